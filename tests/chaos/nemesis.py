"""The nemesis: kills, stops, empties and cuts, one act after another, and makes each good when its time is over."""

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable

import psutil
import psycopg
import redis

from config.stack import Stack
from tests.chaos.history import Fault
from tests.chaos.reading import connect
from tests.chaos.script import ACTS

WORKERS = ("worker", FORKING := "worker2")  # the first calls by itself, the second by its children
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)

PENDING = "SELECT DISTINCT worker FROM effects_effect WHERE state = 'pending' AND reserved_at > now() - interval '1 second'"
BUSY_WITHIN = 2.0  # seconds to wait for a worker with calls under way


class Nemesis:
    """Acts on one Stack; `faults` is what it did, and when it was whole again."""

    def __init__(self, stack: Stack, seed: int, again: Callable[[], None], tell: Callable[[str], None]) -> None:
        self.stack, self.lot, self.again, self.tell = stack, random.Random(f"{seed} nemesis"), again, tell
        self.faults: list[Fault] = []
        self._due: list[tuple[float, str, float, Callable[[], object]]] = []

    def run(self, planned: list[tuple[float, str]]) -> None:
        """Everything that is planned, at its time; comes back after the last act."""
        began = time.monotonic()
        for at, name in planned:
            while (left := began + at - time.monotonic()) > 0:
                self._make_good()
                self._revive()
                time.sleep(min(left, 0.1))
            self._act(name)

    def heal(self) -> None:
        """Everything runs again and nothing is stopped."""
        self._make_good(everything=True)
        self.stack.services()
        if "beat2" in self.stack.children:
            self.stack.kill("beat2")
            del self.stack.children["beat2"]
        self._revive()

    def _act(self, name: str) -> None:
        self.tell(name)
        at = time.time()
        good = getattr(self, "_" + name.replace(" ", "_"))()
        self._due.append((time.monotonic() + ACTS[name], name, at, good or (lambda: None)))

    def _make_good(self, *, everything: bool = False) -> None:
        now = time.monotonic()
        for entry in [entry for entry in self._due if everything or entry[0] <= now]:
            self._due.remove(entry)
            entry[3]()
            self.faults.append(Fault(entry[1], entry[2], time.time()))

    def _revive(self) -> None:
        """Start what has died by itself, as whoever runs the processes does."""
        kept_dead = {name for _, name, _, _ in self._due}
        if "wipe broker" not in kept_dead:
            self.stack.services()
        for name in self.stack.dead():
            if name != "beat2" and f"kill {'provider' if name == 'sandbox' else name.removesuffix('2')}" not in kept_dead:
                self.stack.start(name)

    def _kill(self, name: str) -> Callable[[], object]:
        self.stack.kill(name)
        return lambda: self.stack.start(name)

    def _kill_worker(self) -> Callable[[], object]:
        return self._kill(self.lot.choice(WORKERS))

    def _kill_beat(self) -> Callable[[], object]:
        return self._kill("beat")

    def _kill_web(self) -> Callable[[], object]:
        return self._kill("web")

    def _kill_provider(self) -> Callable[[], object]:
        return self._kill("sandbox")

    def _kill_child(self) -> None:
        for pid in self._busy(self._children())[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _stop_worker(self) -> Callable[[], object] | None:
        first, second = (self.stack.children[name].pid for name in WORKERS)
        return self._stop_in_a_call({first: first} | dict.fromkeys(self._children(), second), whole=True)

    def _stop_child(self) -> Callable[[], object] | None:
        return self._stop_in_a_call({child: child for child in self._children()})

    def _stop_in_a_call(self, leaders: dict[int, int], *, whole: bool = False) -> Callable[[], object] | None:
        """Stop one of these that has rows in flight, or its leader with it; one that had none left when it stood still goes on."""
        deadline = time.monotonic() + BUSY_WITHIN
        while busy := self._busy(list(leaders)):
            go_on = self._stop(leaders[busy[0]], whole=whole)
            if time.monotonic() > deadline or busy[0] in self._at_work():
                return go_on
            go_on()
        return None

    def _stop_beat(self) -> Callable[[], object]:
        return self._stop(self.stack.children["beat"].pid, whole=True)

    def _stop(self, pid: int, *, whole: bool = False) -> Callable[[], object]:
        signalled = os.killpg if whole else os.kill

        def send(number: int) -> None:
            with contextlib.suppress(ProcessLookupError):
                signalled(pid, number)

        send(signal.SIGSTOP)
        return lambda: send(signal.SIGCONT)

    def _two_beats(self) -> Callable[[], object]:
        self.stack.start("beat2")
        return lambda: self.stack.kill("beat2")

    def _flush_broker(self) -> None:
        with contextlib.suppress(redis.RedisError), redis.Redis.from_url(self.stack.embedded.redis_url) as broker:
            broker.flushall()

    def _wipe_broker(self) -> Callable[[], object]:
        """Kill it, take its data away; it comes back empty."""
        valkey = self.stack.embedded.valkey
        assert valkey is not None
        if valkey.child:
            valkey.child.kill()
        shutil.rmtree(valkey.data, ignore_errors=True)
        return self.stack.services

    def _restart_database(self) -> None:
        """An immediate stop: every connection is cut, nothing is written down; then recovery."""
        postgres = self.stack.embedded.postgres
        assert postgres is not None
        if postgres.child:
            os.kill(postgres.child.pid, signal.SIGQUIT)
            deadline = time.monotonic() + 10
            while postgres.child.code() is None and time.monotonic() < deadline:
                time.sleep(0.02)
        self.stack.services()

    def _cut_connections(self) -> None:
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.stack.embedded.database_url, autocommit=True) as connection:
            connection.execute(TERMINATE)

    def _repeat_messages(self) -> None:
        self.again()

    def _busy(self, pids: list[int]) -> list[int]:
        """These processes, those first that have rows in flight at this moment; waits a little for one."""
        deadline = time.monotonic() + BUSY_WITHIN
        while not (at_work := self._at_work().intersection(pids)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.lot.shuffle(pids)
        return sorted(pids, key=lambda pid: pid not in at_work)

    def _at_work(self) -> set[int]:
        """The processes that have reserved rows within the last second and not settled them; none while the database is away."""
        with contextlib.suppress(psycopg.Error), connect(self.stack.embedded.database_url) as connection:
            return {int(worker.split(":")[1]) for (worker,) in connection.execute(PENDING).fetchall()}
        return set()

    def _children(self) -> list[int]:
        """The pool processes of the worker that has some."""
        try:
            return sorted(child.pid for child in psutil.Process(self.stack.children[FORKING].pid).children())
        except psutil.Error:
            return []
