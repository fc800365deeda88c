"""Chunks of approved plans on their way to the sender: announce, take on a lease, send in windows, put back.

A message says only "look at chunk 17". What may be sent is read from the database between windows, so a stop, a pause or an expiry takes
hold there, and no message, lost or repeated, can change anything but timing.
"""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection, transaction
from django.db.models.functions import Now
from django.dispatch import Signal

from approvals.models import Plan, PlanState
from audit import chain
from audit.chain import Actor
from effects import failpoints
from effects.channels import deadline_seconds, setting
from effects.connections import GONE, Connection, insist
from effects.content import Content
from effects.ledger import Claim, Origin
from effects.sending import Limits, Sending
from effects.statements import read_statements
from effects.workplace import Pens, Workplace

CHUNK = 500  # rows of one chunk: enough to make the broker's cost vanish, few enough to share a worker
AHEAD = 0.5  # seconds for which rows read ahead are offered; then they are read anew, so that a stop takes hold
LEASE = 10.0  # seconds a silent holder keeps a chunk; a living one renews it
SOON, SELDOM = 3.0, 10.0  # seconds until a chunk is looked at again whose row waits for a call, or for a person
ANNOUNCED_AT_ONCE = 64  # bounds what the broker holds, however many plans and however big
OF_ONE_PLAN = 8  # of these; as many processes can start on a plan at once
TURNS = 12  # channels that one process serves at the same time
VANISHED = 3  # holders of a chunk that may vanish: after the first, rows are read one by one; the last two while one row was read
POISON = "each worker that read this row ended there, before it could claim it; nothing was sent"

SQL = read_statements(Path(__file__).parent / "sql" / "dispatch.sql")

log = logging.getLogger(__name__)
_turns = itertools.count(1)
chunks_are_due = Signal()  # sent after the commit of an approval or a resumption; beat finds them all the same


def due_chunks() -> list[int]:
    """Ids of chunks to announce now, each marked as announced."""
    with connection.cursor() as cursor:
        cursor.execute(SQL["due"], {"most": ANNOUNCED_AT_ONCE, "of_one_plan": OF_ONE_PLAN})
        return [id for (id,) in cursor.fetchall()]


def expire_plans() -> int:
    """Close proposed plans that nobody decided on in time; silence never becomes a yes. Returns how many."""
    overdue = Plan.objects.filter(state=PlanState.PROPOSED, expires_at__lte=Now())
    expired = 0
    for plan in overdue[:100]:
        with transaction.atomic():
            moved = Plan.objects.filter(pk=plan.pk, state=PlanState.PROPOSED, expires_at__lte=Now())
            if moved.update(state=PlanState.EXPIRED, decided_at=Now()):
                expired += 1
                chain.append(
                    "plan expired",
                    workspace_id=plan.workspace_id,
                    by=Actor("machine", None, "beat"),
                    on=("plan", plan.pk, plan.title),
                    before={"state": PlanState.PROPOSED},
                    after={"state": PlanState.EXPIRED},
                )
    return expired


class Busy(Exception):
    """This process has its hands full, or serves the chunk's channel already; another process may have room."""


async def work_on(chunk_id: int, workplace: Workplace) -> list[int]:
    """Send what may be sent, for one turn, starting at this chunk. Returns the chunks that have more to do at once. Raises Busy."""
    async with workplace.pens() as pen:
        at = await (await (await pen("reserving")).execute(SQL["channel"], {"chunk_id": chunk_id})).fetchone()
        if at is None:
            return []
        with workplace.turn_at(at[0], most=TURNS) as free:
            if not free:
                raise Busy
            return await _turn(chunk_id, workplace, pen)


async def _turn(chunk_id: int, workplace: Workplace, pen: Pens) -> list[int]:
    holder = {"holder": f"{workplace.worker}/{next(_turns)}", "lease": LEASE}
    taken = await (await (await pen("reserving")).execute(SQL["take"], {"chunk_id": chunk_id} | holder)).fetchone()
    if taken is None:
        return []  # not due, or somebody has it: the message was late, or one of many
    plan_id, *chunk, workspace_id, channel_id, tool, event_id, scope, run_id = taken
    turn = {"plan_id": plan_id} | holder
    async with _alive(pen, turn):
        origin = Origin(workspace_id, channel_id, tool, event_id, scope, plan_id, run_id)
        try:
            await _send(workplace, pen, origin, lambda window: _Rows(pen, _Taken(*chunk), turn, window=window))
        except GONE:
            await insist(lambda: pen("reserving"), lambda chunks: _leave(chunks, turn))
            raise
    chunks = await pen("reserving")
    failpoints.reach("put-back", chunks)
    put_back = await chunks.execute(SQL["put_back"], turn | {"soon": SOON, "seldom": SELDOM})
    failpoints.reach("put-back-done", chunks)
    return [id for id, is_due in await put_back.fetchall() if is_due]


async def _leave(chunks: Connection, turn: dict[str, Any]) -> None:
    """The database went away, and not this process: somebody else may go on at once, and no row is to blame."""
    await chunks.execute(SQL["leave"], turn)


async def _send(workplace: Workplace, pen: Pens, origin: Origin, rows: Callable[[int], "_Rows"]) -> None:
    channel = await workplace.channel(await pen("reserving"), origin.channel_id)
    window = int(setting(channel, "window"))
    await Sending(
        source=rows(window),
        provider=await workplace.provider(channel),
        origin=origin,
        limits=Limits(
            window=window,
            max_attempts=int(setting(channel, "max_attempts")),
            deadline=deadline_seconds(channel),
            rate=float(setting(channel, "rate")),
        ),
        pen=pen,
        worker=workplace.worker,
    ).run()


@dataclass(frozen=True, slots=True)
class _Taken:
    """A chunk on a lease of ours; `takes` counts its holders since it was put back, us included, `trying` is where the last ended."""

    id: int
    lo: int
    hi: int
    takes: int
    trying: int | None


class _Rows:
    """The source of one sending: rows that may be sent now, in order, each offered once; chunk after chunk of one plan.

    They are read a window at a time, and anew when that is too long ago. Where a holder of the chunk vanished, one by one, with the
    position committed before: a row in the reading of which two more vanish is offered without its content, and withheld.
    """

    def __init__(self, pen: Pens, chunk: _Taken, turn: dict[str, Any], *, window: int) -> None:
        self._pen, self._chunk, self._after, self._turn, self._window = pen, chunk, chunk.lo - 1, turn, window
        self._ahead: list[tuple[int, Claim]] = []
        self._read_at = 0.0

    async def __call__(self, most: int) -> list[Claim]:
        if time.monotonic() - self._read_at > AHEAD:
            self._ahead = []
        while not self._ahead and not await self._read():
            taken = await (await (await self._pen("reserving")).execute(SQL["take_next"], self._turn)).fetchone()
            if taken is None:
                return []
            self._chunk = _Taken(*taken)
            self._after = self._chunk.lo - 1
        offered, self._ahead = self._ahead[:most], self._ahead[most:]
        self._after = offered[-1][0]
        return [claim for _, claim in offered]

    async def _read(self) -> bool:
        """Read the next rows after the last one offered; False when there are none."""
        pen, most, after = await self._pen("reserving"), self._window, self._after
        self._read_at = time.monotonic()
        if self._chunk.takes > 1:
            suspect = await (await pen.execute(SQL["first"], self._values(after))).fetchone()
            if suspect is None:
                return False
            position, key, epoch, target, amount_minor, digest = suspect
            if position == self._chunk.trying and self._chunk.takes > VANISHED:
                log.error("row %s of plan %s: %s", position, self._turn["plan_id"], POISON)
                self._ahead = [(position, Claim(key, epoch, Content(target, amount_minor=amount_minor), digest, withheld=POISON))]
                return True
            await pen.execute(SQL["try"], self._turn | {"chunk_id": self._chunk.id, "position": position})
            most, after = 1, position - 1
        async for position, key, epoch, *content, digest in await pen.execute(SQL["rows"], self._values(after) | {"most": most}):
            self._ahead.append((position, Claim(key, epoch, Content(*content), digest)))
            failpoints.reach("offer", pen, of=content[0])
        if self._chunk.takes > 1:
            await pen.execute(SQL["survived"], self._turn | {"chunk_id": self._chunk.id})
        return bool(self._ahead)

    def _values(self, after: int) -> dict[str, Any]:
        return {"plan_id": self._turn["plan_id"], "after": after, "hi": self._chunk.hi}


@contextlib.asynccontextmanager
async def _alive(pen: Pens, turn: dict[str, Any]) -> AsyncIterator[None]:
    """Renew the leases of this turn while the work goes on."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(LEASE / 3)
            with contextlib.suppress(psycopg.Error):  # the next one may pass; without any, somebody else takes the chunks
                await (await pen("renewing")).execute(SQL["renew"], turn)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
