"""Worker processes of the tests: forked from one server that has Django loaded, each with failpoints of its own.

A hand does what the Celery tasks do, with the product's waits shortened, and looks at one plan and one channel only, so that
many stories can be told in one database at once.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerProcess
from typing import Any

import django
import psutil
from django.apps import apps

if not apps.ready:
    django.setup()

from approvals import dispatch
from effects import connections, failpoints, ledger, sweeping, verdicts
from effects.workplace import Workplace

PATIENCE = 20.0  # seconds for one hand to finish
START_WITHIN, SLACK, LEASE = 1.0, 0.3, 1.0
fork = multiprocessing.get_context("forkserver")
fork.set_forkserver_preload(["pytest", __name__])

OPEN = """
    SELECT count(*) FROM approvals_row r WHERE r.plan_id = %(plan)s AND r.excluded_reason = '' AND NOT EXISTS (
        SELECT FROM effects_effect e WHERE e.key = r.key AND e.epoch = r.epoch
        AND e.state <> 'pending' AND e.retry_at IS NULL AND e.look_up_at IS NULL)
"""


_started: list[ForkServerProcess] = []
_one_at_a_time = threading.Lock()  # a start reads the others' exit codes too; whoever reads one second gets 255


def end_all() -> None:
    """End every hand that a failing test left behind, stopped ones too."""
    while _started:
        _started.pop().kill()


class Hand:
    """One process at work: `Hand("work", plan, channel, chunks, failpoints="kept:kill")`."""

    def __init__(self, task: str, plan: int, channel: int, chunks: list[int], *, failpoints: str = "") -> None:
        self._name = f"{task} of plan {plan} with {failpoints or 'no failpoint'}"
        self._said, say = fork.Pipe(duplex=False)
        self._process: ForkServerProcess = fork.Process(
            target=_work, args=(task, plan, channel, chunks, failpoints, say), daemon=True
        )
        with _one_at_a_time:
            self._process.start()
        _started.append(self._process)
        say.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def stopped(self) -> bool:
        """Wait until it was stopped by SIGSTOP; False when it ended instead."""
        process = psutil.Process(self.pid)
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and self._exit_code() is None:
            if process.status() == psutil.STATUS_STOPPED:
                return True
            time.sleep(0.01)
        return False

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> tuple[int | None, list[str] | None]:
        """Its exit code, and the points that acted; none when it was killed and could not say."""
        ends = time.monotonic() + PATIENCE
        while (code := self._exit_code()) is None:
            if time.monotonic() > ends:
                self._process.kill()
                raise TimeoutError(f"the hand did not finish: {self._name}")
            time.sleep(0.01)
        try:
            return code, self._said.recv()
        except EOFError:
            return code, None

    def _exit_code(self) -> int | None:
        with _one_at_a_time:
            return self._process.exitcode


def _work(task: str, plan: int, channel: int, chunks: list[int], armed: str, say: Pipe) -> None:
    _make_haste(channel)
    logging.disable()
    place = Workplace()
    failpoints.arm(armed)
    try:
        place.run(TASKS[task](place, plan, chunks))
        place.close()
    except Exception as error:  # as Celery: a task that fails is logged, and the process lives on
        logging.getLogger(__name__).error("%s", error)
    finally:
        say.send([point for point, traps in failpoints._traps.items() for trap in traps if trap.count >= trap.hit])
        say.close()


def _make_haste(channel: int) -> None:
    """The waits of the product, shortened; and nothing of another story."""
    ledger.START_WITHIN, ledger.SLACK, connections.STANDSTILL = START_WITHIN, SLACK, 2.0
    dispatch.LEASE, dispatch.SOON, dispatch.SELDOM = LEASE, 0.3, 0.3
    sweeping.UNDISTURBED = LEASE
    verdicts.BACK_OFF = 0.3
    ours = f"SELECT o.id, o.channel_id FROM ({ledger.SQL['overdue']}) o JOIN effects_effect e ON e.id = o.id AND e.channel_id = {channel}"
    ledger.SQL["overdue"] = ours


async def _send(place: Workplace, plan: int, chunks: list[int]) -> None:
    """What the task `approvals.look_at` does, and what its further messages would."""
    left = list(chunks)
    while left:
        left += await dispatch.work_on(left.pop(0), place)


async def _sweep(place: Workplace, plan: int, chunks: list[int]) -> None:
    """The sweeper alone, until something is overdue and it has looked at it."""
    ends = time.monotonic() + PATIENCE - 5
    while time.monotonic() < ends and not await sweeping.sweep(place):
        await asyncio.sleep(0.05)


async def _recover(place: Workplace, plan: int, chunks: list[int]) -> None:
    """A fresh worker and the sweeper, until nothing moves any more."""
    ends = time.monotonic() + PATIENCE - 5
    while time.monotonic() < ends:
        await sweeping.sweep(place)
        for chunk in chunks:
            await _send(place, plan, [chunk])
        async with place.pens() as pen:
            cursor = await (await pen("reading")).execute(OPEN, {"plan": plan})
            if await cursor.fetchone() == (0,):
                return
        await asyncio.sleep(0.1)


TASKS: dict[str, Any] = {"work": _send, "sweep": _sweep, "recover": _recover}
