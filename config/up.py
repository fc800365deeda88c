"""`python -m config.up`: all of Signoff on this machine, until Ctrl-C."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console

from config.embedded import Refusal
from config.embedded.refusal import of_system
from config.stack import BASE_DIR, Stack

PROCESSES = ("web", "worker", "beat")
CALM = 60.0  # seconds of running after which a process is forgiven its earlier deaths
LONGEST_WAIT = 30.0  # seconds before the next start of a process that keeps dying
CONSOLE = Console(highlight=False, soft_wrap=True)


class Ended(BaseException):
    """Somebody asked us to end: Ctrl-C, a SIGTERM, or a closed terminal."""


def main() -> int:
    """Start everything, watch it, end it; gives the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        with Stack(say=CONSOLE.print) as stack:
            try:
                _start(stack)
                _watch(stack)
            except Ended:
                CONSOLE.print("Stopping…")
            finally:
                _ignore_signals()
        return 0
    except Ended:
        return 0
    except Refusal as refusal:
        CONSOLE.print(str(refusal), style="bold red", markup=False)
    except OSError as error:
        CONSOLE.print(str(of_system(error, BASE_DIR)), style="bold red", markup=False)
    return 1


def _end(number: int, frame: FrameType | None) -> None:
    _ignore_signals()  # once is enough, and a second one must not cut the orderly stop short
    raise Ended


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _start(stack: Stack) -> None:
    stack.claim_port()
    with _step("PostgreSQL and Redis"):
        stack.services()
    with _step("Database tables and roles"):
        stack.migrate()
    with _step("Demo mailbox"):
        mailbox = stack.mailbox()
    with _step("Demo workspace"):
        story = stack.run("-m", "config.demo.world", name="demo_world")
    with _step("Web, worker and beat"):
        for name in PROCESSES:
            stack.start(name)
        address = stack.wait_for_web()
    with _step("Demo plan"):
        story += stack.run("-m", "config.demo.propose", address, name="demo_plan")
    CONSOLE.print(f"\nSignoff is at [bold]{address}[/bold]   Mail it sends is at {mailbox}   Logs: {stack.home.log}")
    CONSOLE.print(story.rstrip(), markup=False)
    CONSOLE.print("Ctrl-C ends all of it.\n")


@contextmanager
def _step(title: str) -> Iterator[None]:
    """Show that `title` is being worked on, then that it is done and how long it took."""
    began = time.monotonic()
    with CONSOLE.status(f"{title}…"):
        yield
    CONSOLE.print(f"[green]✓[/green] {title}  [dim]{time.monotonic() - began:.1f} s[/dim]")


def _watch(stack: Stack) -> None:
    """Bring back whatever dies, later each time it dies soon again."""
    deaths: dict[str, int] = {}
    due: dict[str, float] = {}
    while True:
        for name in stack.embedded.dead():
            CONSOLE.print(f"{name} ended; starting it again.", style="yellow")
            stack.services()
        for name, code in stack.dead().items():
            if name not in due:
                lived = time.monotonic() - stack.children[name].began
                deaths[name] = 1 if lived > CALM else deaths.get(name, 0) + 1
                wait = min(LONGEST_WAIT, 2.0 ** (deaths[name] - 1))
                due[name] = time.monotonic() + wait
                _tell(stack, name, code, wait)
            elif time.monotonic() >= due[name]:
                del due[name]
                stack.start(name)
        time.sleep(0.2)


def _tell(stack: Stack, name: str, code: int, wait: float) -> None:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    last = stack.logs(name).strip().splitlines()[-3:]
    CONSOLE.print(f"{name} ended ({how}); starting it again in {wait:.0f} s.", style="yellow")
    for line in last if code > 0 else []:
        CONSOLE.print(f"  {line}", style="dim", markup=False)


if __name__ == "__main__":
    os.chdir(BASE_DIR)
    sys.exit(main())
