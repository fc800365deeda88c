"""Chunks of approved plans on their way to the sender: announce, take on a lease, send in windows, put back.

A message says only "look at chunk 17". What may be sent is read from the database between windows, so a stop, a pause or an expiry takes
hold there, and no message, lost or repeated, can change anything but timing.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from django.db import connection
from django.dispatch import Signal

from effects.channels import deadline_seconds, setting
from effects.content import Content
from effects.ledger import Claim, Connection, Origin
from effects.sending import Limits, Sending
from effects.statements import read_statements
from effects.workplace import Workplace

CHUNK = 500  # rows of one chunk: enough to make the broker's cost vanish, few enough to share a worker
LEASE = 10.0  # seconds a silent holder keeps a chunk; a living one renews it
RECHECK = 5.0  # seconds until a chunk is looked at again whose row waits for somebody else's open effect
ANNOUNCED_AT_ONCE = 64  # bounds what the broker holds, however big the plan

SQL = read_statements(Path(__file__).parent / "sql" / "dispatch.sql")

chunks_are_due = Signal()  # sent after the commit of an approval or a resumption; beat finds them all the same


def due_chunks() -> list[int]:
    """Ids of chunks to announce now, each marked as announced."""
    with connection.cursor() as cursor:
        cursor.execute(SQL["due"], {"most": ANNOUNCED_AT_ONCE})
        return [id for (id,) in cursor.fetchall()]


async def work_on(chunk_id: int, workplace: Workplace) -> bool:
    """Send what may be sent of one chunk, for one turn. True when there is more to do at once."""
    pen = await workplace.pen("reserving")
    taken = await (await pen.execute(SQL["take"], {"chunk_id": chunk_id, "worker": workplace.worker, "lease": LEASE})).fetchone()
    if taken is None:
        return False  # not due, or somebody has it: the message was late, or one of many
    plan_id, lo, hi, workspace_id, channel_id, tool, event_id, scope, run_id = taken
    channel = await workplace.channel(channel_id)
    async with _held(chunk_id, workplace):
        await Sending(
            source=_Rows(pen, plan_id, lo, hi),
            provider=await workplace.provider(channel),
            origin=Origin(workspace_id, channel_id, tool, event_id, scope, plan_id, run_id),
            limits=Limits(
                window=int(setting(channel, "window")),
                max_attempts=int(setting(channel, "max_attempts")),
                deadline=deadline_seconds(channel),
                rate=float(setting(channel, "rate")),
            ),
            reserving=pen,
            recording=await workplace.pen("recording"),
            worker=workplace.worker,
        ).run()
    done = await (
        await pen.execute(SQL["put_back"], {"chunk_id": chunk_id, "worker": workplace.worker, "recheck": RECHECK})
    ).fetchone()
    return bool(done and done[0])


class _Rows:
    """The source of one sending: the rows of a chunk that may be sent now, in order, each offered once a turn."""

    def __init__(self, pen: Connection, plan_id: int, lo: int, hi: int) -> None:
        self._pen, self._plan_id, self._after, self._hi = pen, plan_id, lo - 1, hi

    async def __call__(self, most: int) -> list[Claim]:
        cursor = await self._pen.execute(
            SQL["rows"], {"plan_id": self._plan_id, "after": self._after, "hi": self._hi, "most": most}
        )
        claims = []
        async for position, key, epoch, target, subject, text, html, payload, amount_minor, digest in cursor:
            self._after = position
            claims.append(Claim(key, epoch, Content(target, subject, text, html, payload, amount_minor), digest))
        return claims


@contextlib.asynccontextmanager
async def _held(chunk_id: int, workplace: Workplace) -> AsyncIterator[None]:
    """Renew the lease while the work goes on."""

    async def renew() -> None:
        pen = await workplace.pen("renewing")
        while True:
            await asyncio.sleep(LEASE / 3)
            await pen.execute(SQL["renew"], {"chunk_id": chunk_id, "worker": workplace.worker, "lease": LEASE})

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
