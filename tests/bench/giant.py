"""`make bench ARGS=--giant`: a hundred thousand rows through the whole product, and what they cost (case BR-23).

An agent streams the rows over the API and submits; a reviewer opens the plan, filters and approves it through the form; two workers
send; somebody looks at pages all the while; the rows are taken away as CSV and come back as another plan with the same text.
Exit code 1 when a process, a page, the approval or the broker passed its bound, or a target got none or two.
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.demo.visitors import field
from config.embedded import Refusal
from config.stack import BASE_DIR, Stack
from tests.bench.letters import ndjson
from tests.bench.watching import Onlooker, Reader, Watch

if TYPE_CHECKING:  # needs Django set up
    from tests.bench.product import Product

MEGABYTES, SECONDS, APPROVAL, MESSAGES = 512, 2.0, 4096, 256  # the bounds: of a process, a page, a form in bytes, the broker
PROCESSES = ("web", "worker", "worker2", "beat")
PATIENCE = 1800.0  # seconds for everything to be sent
BEGAN = time.monotonic()


def tell(line: str) -> None:
    """One line, with the seconds since the beginning."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {line}", flush=True)


class Agent:
    """A program with a token, patient, which streams what it has."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def ask(self, path: str, body: Iterable[bytes] | dict[str, Any] | None = None, kind: str = "application/json") -> Any:
        """The JSON answer to a POST, or to a GET where there is no body. Raises Refusal when it is a no."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Content-Type": kind} if body is not None else {})
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        connection.request("GET" if body is None else "POST", f"/api/v1/{path}", data, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise Refusal(f"{path}: {answer.status} {text[:1000].decode(errors='replace')}")
        return json.loads(text)

    def open(self, title: str, event: str) -> int:
        """A draft; gives its number."""
        run = self.ask("runs", {"agent": "giant", "event_id": event})["id"]
        words = {"run_id": run, "title": title, "tool": "send_email", "channel": "http", "event_id": event, "currency": "EUR"}
        return int(self.ask("plans", words)["id"])


class Walk:
    """One plan on its way through everything."""

    def __init__(self, stack: Stack, rows: int, provider: str, product: "Product") -> None:
        self.stack, self.rows, self.provider, self.product = stack, rows, provider, product
        self.agent = Agent(stack.port, product.secret)
        self.steps: dict[str, float] = {}
        self.broken: list[str] = []
        address = f"http://127.0.0.1:{stack.port}"
        self.alice, self.ed = (Reader(address, f"{name}@bench.example", product.password) for name in ("alice", "ed"))
        self.watcher = Reader(address, "alice@bench.example", product.password)

    def go(self) -> None:
        """All steps, in their order."""
        with self.step("load"):
            self.plan = self.agent.open("A giant plan", "giant")
            told = self.agent.ask(f"plans/{self.plan}/rows", ndjson(self.rows), "application/x-ndjson")
        self.want(told["rows"] == self.rows, f"{told['rows']:,} rows were taken")
        self.home = f"/{self.product.workspace.slug}/plans/{self.plan}/"
        with self.step("submit"):
            self.checks = self.agent.ask(f"plans/{self.plan}/submit", {})["checks"]
        self.want(not self.checks, f"checks found something: {self.checks}")
        with self.step("open and filter"):
            page = self.alice.look("plan, proposed", self.home)
            for name, query in (
                ("text", "text=customer777"),
                ("waiting", "state=waiting"),
                ("later page", f"after={self.rows // 2}"),
            ):
                self.alice.look(f"plan, {name}", f"{self.home}?{query}")
        with self.step("approve"):
            self.alice.submit(f"{self.home}approval/", {"digest": field(page, "digest"), "reason": "Read."}, page=self.home)
        self._send()
        self._take_away()

    def pages(self) -> dict[str, str]:
        """Pages to look at while it is sent."""
        base = f"/{self.product.workspace.slug}/"
        plan = {
            "plan, going out": "", "live poll": "progress/?v=old", "rows by text": "?text=customer999",
            **{f"rows, {figure}": f"?state={figure}" for figure in ("done", "waiting", "pending", "failed")},
        }  # fmt: skip
        lists = {
            "inbox": "inbox/", "badges": "inbox/count/", "plans": "plans/", "runs": "runs/", "effects": "effects/",
            "effects, done": "effects/?state=done", "effects, failed": "effects/?state=failed",
            "effects, target": "effects/?target=customer42", "effects, plan": f"effects/?plan={self.plan}",
            "desk": "unknown/", "epochs": "epochs/", "record": "audit/",
        }  # fmt: skip
        return {name: self.home + path for name, path in plan.items()} | {name: base + path for name, path in lists.items()}

    def _send(self) -> None:
        onlooker = Onlooker(self.watcher, self.pages())
        onlooker.start()
        with self.step("send"):
            deadline = time.monotonic() + PATIENCE
            while (counts := self._counts())["waiting"] + counts["pending"]:
                if time.monotonic() > deadline:
                    raise Refusal(f"not sent within {PATIENCE:.0f} s: {counts}")
                time.sleep(0.5)
        onlooker.over.set()
        onlooker.join(60)
        self.want(not onlooker.trouble, onlooker.trouble)
        with urllib.request.urlopen(f"{self.provider}/stats", timeout=10) as answer:
            told = json.load(answer)
        self.want(counts["done"] == counts["rows"] == self.rows, f"the sum does not add up: {counts}")
        self.want(
            told["hits"] == told["distinct"] == self.rows,
            f"the provider heard {told['hits']:,} calls for {told['distinct']:,} keys",
        )
        none, several = self.product.rows_not_done_once(self.plan)
        self.want(not none and not several, f"{none:,} rows have no done effect, {several:,} have several")
        self.rate = (told["hits"] - 1) / max(0.001, told["last"] - told["first"])

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = self.agent.ask(f"plans/{self.plan}")["counts"]
        adds_up = counts["rows"] == sum(counts.values()) - counts["rows"] and min(counts.values()) >= 0
        self.want(adds_up, f"the sum does not add up: {counts}")
        return counts

    def _take_away(self) -> None:
        file = self.stack.home.path / "rows.csv"
        with self.step("export"):
            self.exported = self.alice.take(f"{self.home}export/", file)
        for name in ("audit", "epochs"):
            self.ed.take(f"/{self.product.workspace.slug}/{name}/export/", self.stack.home.path / f"{name}.csv")
        with self.step("import"):
            again = self.agent.open("The same rows again", "giant, again")
            with file.open("rb") as body:
                told = self.agent.ask(f"plans/{again}/rows", iter(lambda: body.read(1 << 16), b""), "text/csv")
        self.want(told["rows"] == self.rows, f"{told['rows']:,} rows came back")
        different = self.product.rows_that_differ(self.plan, again)
        self.want(different == 0, f"{different:,} rows came back with another text")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step."""
        began = time.monotonic()
        yield
        self.steps[name] = round(time.monotonic() - began, 1)
        tell(f"{name}: {self.steps[name]} s")

    def want(self, holds: bool, otherwise: str) -> None:
        """Note what should not be; it is told at the end, once."""
        if not holds and otherwise not in self.broken:
            self.broken.append(otherwise)
            tell(f"BROKEN: {otherwise}")

    def report(self, watch: Watch) -> dict[str, Any]:
        """The figures, each held against its bound."""
        approval = self.alice.sent[f"{self.home}approval/"]
        slowest, seconds = max(self.watcher.slowest(), self.alice.slowest(), key=lambda found: found[1])
        for name, mb in watch.mb.items():
            self.want(mb <= MEGABYTES, f"{name} held {mb:.0f} MB")
        self.want(seconds <= SECONDS, f"{slowest} took {seconds:.2f} s")
        self.want(approval <= APPROVAL, f"the approval has {approval:,} bytes")
        self.want(watch.most_held <= MESSAGES, f"the broker held {watch.most_held:,} messages")
        pages = {
            name: {"looks": len(times), "median_ms": round(1000 * sorted(times)[len(times) // 2]), "slowest_ms": round(1000 * max(times))}
            for reader in (self.alice, self.watcher) for name, times in reader.seconds.items()
        }  # fmt: skip
        return {
            "rows": self.rows,
            "steps_s": self.steps,
            "sent_per_s": round(self.rate),
            "peak_mb": {name: round(mb) for name, mb in watch.mb.items()},
            "slowest_page_s": round(seconds, 3),
            "slowest_page": slowest,
            "pages": pages,
            "approval_bytes": approval,
            "export_mb": round(self.exported / 1e6, 1),
            "broker_messages": watch.most_held,
            "broker_keys": dict(watch.held),
            "broken": self.broken,
        }


def show(report: dict[str, Any]) -> None:
    """The table."""
    print(f"\n{report['rows']:,} rows, sent at {report['sent_per_s']:,} a second; {report['export_mb']} MB of CSV")
    print("  " + ", ".join(f"{name} {seconds} s" for name, seconds in report["steps_s"].items()))
    lines: list[tuple[str, str, str]] = [(name, f"{mb} MB at most", f"{MEGABYTES} MB") for name, mb in report["peak_mb"].items()]
    lines.append(("approval", f"{report['approval_bytes']:,} bytes", f"{APPROVAL:,} bytes"))
    lines.append(("broker", f"{report['broker_messages']} messages at most", f"{MESSAGES}"))
    lines.append((report["slowest_page"], f"{report['slowest_page_s']} s, the slowest page", f"{SECONDS:g} s"))
    for name, figure, bound in lines:
        print(f"{name:>22}  {figure:<28} bound {bound}")
    print(f"{'page':>22}  looks  median  slowest")
    for name, page in report["pages"].items():
        print(f"{name:>22}  {page['looks']:>5}  {page['median_ms']:>4} ms  {page['slowest_ms']:>4} ms")
    for broken in report["broken"]:
        print(f"  BROKEN: {broken}")


def measure(stack: Stack, rows: int) -> dict[str, Any]:
    """Everything up, one walk, the figures."""
    os.environ |= stack.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    from tests.bench.product import Product

    provider = stack.home.port("bench-provider")
    stack.commands["provider"] = f"python -m tests.bench.provider {provider}"
    stack.commands["worker2"] = stack.commands["worker"] + " --hostname two@%h"
    stack.addresses["worker2"] = stack.addresses["worker"]
    stack.start("provider")
    address = f"http://127.0.0.1:{provider}"
    stack.wait_for("provider", f"{address}/stats")
    for name in PROCESSES:
        stack.start(name)
    stack.wait_for_web()
    walk = Walk(stack, rows, address, Product(f"{address}/send", window=256))
    servers = {"postgres": stack.embedded.postgres, "valkey": stack.embedded.valkey}
    children = {name: server.child.pid for name, server in servers.items() if server and server.child}
    with Watch({name: stack.children[name].pid for name in PROCESSES}, children, stack.environment["REDIS_URL"]) as watch:
        walk.go()
    return walk.report(watch)


def on_scratch_data(work: Callable[[Stack], dict[str, Any]], name: str, *, keep: bool) -> dict[str, Any]:
    """Run `work` with services, tables and roles of its own; what it gives is written to build/NAME.json."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # whoever ends us early leaves no process behind
    folder = Path(tempfile.mkdtemp(prefix=f"signoff-{name}-"))
    folder.chmod(0o755)  # the database's own account must be able to enter
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL", "SIGNOFF_DATA_DIR")}
    try:
        with Stack(folder, port=_free_port(), environment=clean, say=tell) as stack:
            stack.services()
            stack.migrate()
            report = work(stack)
    finally:
        if keep:
            tell(f"The data and the logs are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    path = BASE_DIR / "build" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=1))
    tell(f"Written to {path.relative_to(BASE_DIR)}")
    return report


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(arguments: list[str] | None = None) -> int:
    """Walk, print, write; 0 when every bound held and every target got exactly one."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=--giant", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="keep the scratch data")
    options = parser.parse_args(arguments)
    try:
        report = on_scratch_data(lambda stack: measure(stack, options.rows), "giant", keep=options.keep)
    except Refusal as refusal:
        tell(str(refusal))
        return 1
    show(report)
    return int(bool(report["broken"]))


if __name__ == "__main__":
    sys.exit(main())
