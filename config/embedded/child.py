"""A process that we start, that logs to a file, and that never outlives us."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from config.embedded.owner import Owner

LEASH = Path(__file__).with_name("leash.py")
LOG_KEPT = 5_000_000  # bytes; a longer log is moved aside once, when its process starts
TICK = 0.02  # seconds between two looks


class Child:
    """One running program in a session of its own, so that Ctrl-C in the terminal reaches us and not it.

    Start it from a thread that lives on: the kernel ties the leash to the starting thread.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        folder: Path,
        environment: Mapping[str, str],
        farewell: signal.Signals = signal.SIGTERM,
        owner: Owner | None = None,
    ) -> None:
        self.log = log
        self.farewell = farewell
        self.began = time.monotonic()
        if log.exists() and log.stat().st_size > LOG_KEPT:
            log.replace(log.with_suffix(".log.old"))
        user = f"{owner.uid}:{owner.gid}" if owner else "-"
        leash = [sys.executable, "-I", "-S", str(LEASH), str(int(farewell)), str(os.getpid()), user]
        with log.open("ab") as out:
            self.log_starts_at = out.tell()
            self._process = subprocess.Popen(
                [*leash, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group."""
        return self._process.pid

    def code(self) -> int | None:
        """None while it runs; afterwards its exit code, or minus the signal that ended it."""
        return self._process.poll()

    def said(self) -> str:
        """What it has written to its log since it was started."""
        with self.log.open("rb") as file:
            file.seek(self.log_starts_at)
            return file.read().decode(errors="replace")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to it and all its own children; with SIGKILL, come back when it is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        if number == signal.SIGKILL:
            self._process.wait()

    def ask_to_stop(self) -> None:
        """Say farewell and come back at once."""
        if self.code() is None:
            self._process.send_signal(self.farewell)

    def stop(self, patience: float = 10.0) -> None:
        """Ask it to stop, wait up to `patience` seconds, then end whatever is left of it."""
        self.ask_to_stop()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()


def clear_leftovers(folder: Path, patience: float = 15.0) -> None:
    """End every process that still works in `folder`: its starter is gone, for the caller holds the lock.

    The working folder tells our own servers from a stranger who was given an old process id.
    """
    deadline = time.monotonic() + patience
    asked: set[int] = set()
    while found := list(_working_in(folder)):
        for process in found:
            if time.monotonic() > deadline:
                _signal(process, signal.SIGKILL)
            elif process.pid not in asked:
                asked.add(process.pid)
                _signal(process, signal.SIGINT)  # PostgreSQL: fast shutdown; Valkey: orderly shutdown
        time.sleep(TICK)


def _working_in(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.Error, OSError):
            continue


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.Error):
        process.send_signal(number)
