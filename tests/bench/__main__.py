"""`python -m tests.bench`: rounds of Signoff and its peers in turn, medians of ratios, and what a kill leaves behind.

Ratios are taken within a round, where everybody met the same machine. `build/bench.json` holds what is printed.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from config.embedded import Refusal
from config.stack import BASE_DIR, Stack
from tests.bench.meters import Peak, cpu_seconds

CONNECTIONS = 128  # calls in flight, for each of two processes, for us and for the bare loop
WINDOW = 2 * CONNECTIONS  # rows reserved and not yet settled, for each process
PEER_MESSAGES = {"celery": {0: 2000, 50: 2000}, "dbos": {0: 400, 50: 400}}
ENDING = 10.0


class Bench:
    """One provider, one database, one broker; each contender runs alone."""

    def __init__(self, stack: Stack, provider: str, messages: int) -> None:
        from tests.bench.product import Product

        self.stack, self.provider, self.url, self.messages = stack, provider, f"{provider}/send", messages
        self.product = Product(self.url, WINDOW)
        self.postgres = int(Path(stack.home.path, "postgres", "postmaster.pid").read_text().split()[0])

    def told(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.provider}/stats", timeout=10) as answer:
            figures: dict[str, Any] = json.load(answer)
        return figures

    def reset(self, delay_ms: int) -> None:
        urllib.request.urlopen(f"{self.provider}/reset?delay={delay_ms / 1000}", timeout=10).close()

    def wait_for(self, hits: int, process: subprocess.Popen[bytes] | None = None, patience: float = 180.0) -> dict[str, Any]:
        """The provider's figures once it has counted so many."""
        deadline = time.monotonic() + patience
        while (figures := self.told())["hits"] < hits:
            if time.monotonic() > deadline or (process and process.poll() not in (None, 0)):
                raise SystemExit(f"only {figures['hits']} of {hits} messages arrived")
            time.sleep(0.1)
        return figures

    def spawn(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        log = (self.stack.home.log / "contenders.log").open("ab")
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=BASE_DIR, env=self.stack.environment | environment,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip

    def ours(self, delay_ms: int) -> dict[str, float]:
        """An approved plan to a settled ledger, two worker processes. Timed from the first hit to the last row settled."""
        from tests.bench.product import database_figures, wal_since

        self._warm(delay_ms)
        plan = self.product.proposed(self.messages)
        self.reset(delay_ms)
        worker = self.worker
        before, cpu = database_figures(), cpu_seconds(worker.pid) + cpu_seconds(self.postgres)
        with Peak(worker.pid) as peak:
            self.product.approve(plan)
            figures = self.wait_for(self.messages, worker)
            ended = self.product.settled_at(plan).timestamp()
        cpu = cpu_seconds(worker.pid) + cpu_seconds(self.postgres) - cpu
        time.sleep(1.5)  # the statistics of commits come late
        after = database_figures()
        assert figures["hits"] == figures["distinct"] == self.messages, figures
        return {
            "rate": (self.messages - 1) / (ended - figures["first"]),
            "commits": (after["commits"] - before["commits"]) / self.messages,
            "wal": wal_since(before["lsn"]) / self.messages,
            "cpu_ms": cpu / self.messages * 1000,
            "peak_mb": peak.mb,
        }

    def celery(self, delay_ms: int) -> float:
        """Plain Celery, one task a message, its queue full before the worker starts. Processes at 0 ms, threads where it waits."""
        from tests.bench.peers import app, send_one

        n = PEER_MESSAGES["celery"][delay_ms]
        broker = self.stack.embedded.redis_url.rpartition("/")[0] + "/1"
        app.conf.broker_url = broker
        with app.connection_for_write() as connection:
            for number in range(n):
                send_one.apply_async((self.url, number), connection=connection)
        self.reset(delay_ms)
        pool = ["--pool", "prefork", "-c", "2"] if delay_ms == 0 else ["--pool", "threads", "-c", str(2 * CONNECTIONS)]
        worker = self.spawn(
            "-m", "celery", "-A", "tests.bench.peers", "worker", "--loglevel", "WARNING", *pool, BENCH_BROKER=broker
        )
        try:
            return _rate(self.wait_for(n, worker), n)
        finally:
            _end(worker)

    def bare(self, delay_ms: int) -> float:
        """aiohttp in two processes, nothing written down."""
        self.reset(delay_ms)
        half = self.messages // 2
        spans = ((0, half), (half, self.messages))
        processes = [
            self.spawn("-m", "tests.bench.peers", "bare", self.url, str(lo), str(hi), str(CONNECTIONS)) for lo, hi in spans
        ]
        figures = self.wait_for(self.messages)
        for process in processes:
            process.wait(30)
        return _rate(figures, self.messages)

    def dbos(self, delay_ms: int) -> float:
        """DBOS in two processes, one recorded step a message."""
        self.reset(delay_ms)
        n = PEER_MESSAGES["dbos"][delay_ms]
        database = self.stack.embedded.database_url
        processes = [
            self.spawn(
                "-m", "tests.bench.peers", "dbos", self.url, str(lo), str(lo + n // 2), "32", _other(database, f"dbos{lo}")
            )
            for lo in (0, n // 2)
        ]
        try:
            return _rate(self.wait_for(n, processes[0]), n)
        finally:
            for process in processes:
                _end(process)

    def ceiling(self) -> float:
        """What the provider can take, from a client that does nothing else."""
        rates = []
        for _ in range(2):
            self.reset(0)
            processes = [self.spawn("-m", "tests.bench.flood", self.provider, "10000") for _ in range(2)]
            rates.append(_rate(self.wait_for(20_000), 20_000))
            for process in processes:
                process.wait(30)
        return max(rates)

    def killed(self) -> dict[str, int]:
        """SIGKILL to the whole worker in the middle: rows left unsettled, of at most a window for each process."""
        from effects.models import Effect

        self._warm(50)
        plan = self.product.proposed(2000)
        self.reset(50)
        self.product.approve(plan)
        self.wait_for(700)
        os.killpg(self.worker.pid, signal.SIGKILL)
        self.worker.wait()
        time.sleep(0.5)
        left = Effect.objects.filter(plan_id=plan.pk, state="pending")
        by_process = [left.filter(worker=worker).count() for worker in left.values_list("worker", flat=True).distinct()]
        return {"unsettled": sum(by_process), "most_of_one_process": max(by_process, default=0), "window": WINDOW}

    def _warm(self, delay_ms: int) -> None:
        """A worker whose two processes have both worked before."""
        self.reset(delay_ms)
        if not hasattr(self, "worker") or self.worker.poll() is not None:
            self.worker = self.spawn("-m", "tests.bench.workers", **self.stack.environment_of("worker"))
        for _ in range(6):  # whoever comes up first may have sent a whole plan before the other does
            plan = self.product.proposed(2000)
            self.product.approve(plan)
            self.product.settled_at(plan)
            if self.product.workers_of(plan) == 2:
                return
        raise SystemExit("one of the two worker processes sent nothing")


def _rate(figures: dict[str, Any], n: int) -> float:
    assert figures["distinct"] >= n, figures
    return (figures["hits"] - 1) / (figures["last"] - figures["first"])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(ENDING)


def _other(database_url: str, name: str) -> str:
    return database_url.rpartition("/")[0] + f"/{name}"


def _rounds(bench: Bench, delay_ms: int, rounds: int, contenders: list[str]) -> dict[str, Any]:
    """Medians of `rounds` interleaved rounds at one latency of the provider."""
    runs: list[dict[str, float]] = []
    for number in range(1, rounds + 1):
        ours = bench.ours(delay_ms)
        _end(bench.worker)
        others: dict[str, Callable[[int], float]] = {"bare": bench.bare, "celery": bench.celery, "dbos": bench.dbos}
        run = ours | {name: others[name](delay_ms) for name in contenders}
        runs.append(run)
        print(
            f"  {delay_ms:>2} ms, round {number}: " + "  ".join(f"{name} {value:,.3g}" for name, value in run.items()), flush=True
        )

    def median(of: Callable[[dict[str, float]], float]) -> float:
        return round(statistics.median(of(run) for run in runs), 4)

    figures: dict[str, Any] = {f"ratio_{name}": median(lambda run, name=name: run["rate"] / run[name]) for name in contenders}
    figures |= {
        "effects_per_s": median(lambda run: run["rate"]),
        "commits_per_effect": median(lambda run: run["commits"]),
        "wal_per_effect": median(lambda run: run["wal"]),
        "cpu_ms_per_effect": median(lambda run: run["cpu_ms"]),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "rounds": runs,
    }
    return figures


def main() -> int:
    """Print the figures and write them to build/bench.json."""
    for name in ("giant", "lists"):  # measurements of their own: `python -m tests.bench.giant --help`
        if f"--{name}" in sys.argv:
            return int(import_module(f"tests.bench.{name}").main([word for word in sys.argv[1:] if word != f"--{name}"]))
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="bare,celery,dbos", help="the peers to run, with commas")
    parser.add_argument("--giant", action="store_true", help="instead: a plan of 100,000 rows (build/giant.json)")
    parser.add_argument(
        "--lists", action="store_true", help="instead: every list on a ledger of a million rows (build/lists.json)"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # whoever ends us early leaves no worker behind
    folder = Path(tempfile.mkdtemp(prefix="signoff-bench-"))
    folder.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    try:
        with Stack(folder, environment=clean, say=print) as stack:
            stack.services()
            stack.migrate()
            report = _measure(stack, options)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    path = BASE_DIR / "build" / "bench.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=1))
    print(f"Written to {path.relative_to(BASE_DIR)}")
    return 0


def _measure(stack: Stack, options: argparse.Namespace) -> dict[str, Any]:
    os.environ |= stack.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    port = stack.home.port("bench-provider")
    provider = subprocess.Popen([sys.executable, "-m", "tests.bench.provider", str(port)], cwd=BASE_DIR, env=stack.environment)
    bench = None
    try:
        time.sleep(0.5)
        bench = Bench(stack, f"http://127.0.0.1:{port}", options.messages)
        report: dict[str, Any] = {"provider_ceiling": round(bench.ceiling())}
        print(f"The provider alone takes {report['provider_ceiling']:,} messages a second.", flush=True)
        peers = [name for name in options.only.split(",") if name]
        for delay_ms in (0, 50):
            report[f"{delay_ms}_ms"] = _rounds(bench, delay_ms, options.rounds, peers)
        report["kill"] = bench.killed()
    finally:
        if bench and hasattr(bench, "worker"):
            _end(bench.worker)
        provider.kill()
        provider.wait()
    for name in ("0_ms", "50_ms"):
        print(name, {key: value for key, value in report[name].items() if key != "rounds"})
    print("kill", report["kill"])
    return report


if __name__ == "__main__":
    sys.exit(main())
