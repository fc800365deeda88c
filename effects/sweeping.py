"""The sweeper: speaks for rows whose worker no longer can. It reads kept replies again and asks providers; it never sends.

A pending row past its deadline is read again from its kept reply, else looked up; a miss right after a crash proves nothing, so the
provider is asked again and again through the channel's settle window. Then the row is unknown and a person has it.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from effects import ledger
from effects.channels import setting
from effects.ledger import Connection
from effects.looking import look_up
from effects.models import Channel
from effects.providers.base import Answer, Provider, Sighting
from effects.reading import verdict_of
from effects.states import State
from effects.verdicts import Reply, ReplyKind
from effects.workplace import Workplace

log = logging.getLogger(__name__)

MOST = 200  # rows of one sweep
AT_ONCE = 16  # look-ups in flight


@dataclass(frozen=True, slots=True)
class Overdue:
    """A row that nobody is working on."""

    id: int
    state: State
    channel_id: int
    key: str
    epoch: int
    deadline: datetime
    settled_at: datetime | None
    reply: Reply | None
    now: datetime

    @property
    def quiet_since(self) -> datetime:
        """From when the settle window counts."""
        return self.settled_at or self.deadline


async def sweep(workplace: Workplace, *, most: int = MOST) -> int:
    """Look once at what is overdue; returns how many rows were looked at."""
    pen = await workplace.pen("sweeping")
    rows = await _read(pen, await ledger.overdue(pen, most=most))
    by_channel: dict[int, list[Overdue]] = {}
    for row in rows:
        by_channel.setdefault(row.channel_id, []).append(row)
    for channel_id, of_channel in by_channel.items():
        try:
            await _sweep_channel(workplace, pen, await workplace.channel(channel_id), of_channel)
        except ledger.GONE:  # the database's trouble, not the channel's: the next sweep goes on from here
            raise
        except Exception as error:  # one channel's trouble (a key rotated away, say) is nobody else's
            log.exception("channel %s could not be swept", channel_id)
            sighting = Sighting(Answer.INCONCLUSIVE, raw=f"{type(error).__name__}: {error}".encode(errors="replace"))
            pen = await workplace.pen("sweeping")
            for row in of_channel:
                await ledger.ask_again(pen, row.id, seen=row.state, sighting=sighting, by=workplace.worker, seconds=30)
    return len(rows)


async def _sweep_channel(workplace: Workplace, pen: Connection, channel: Channel, rows: list[Overdue]) -> None:
    provider = await workplace.provider(channel)
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def ask(row: Overdue) -> Sighting:
        async with turnstile:
            return await look_up(provider, row.key, row.epoch)

    await _read_again(pen, channel, provider, [row for row in rows if row.reply], by=workplace.worker)
    silent = [row for row in rows if not row.reply or row.state == State.UNKNOWN]
    if not provider.can_look_up():
        for row in silent:
            await _hand_over(pen, row, reason="no answer was kept, and this provider cannot be asked", by=workplace.worker)
        return
    sightings = await asyncio.gather(*(ask(row) for row in silent))
    for row, sighting in zip(silent, sightings, strict=True):
        await _weigh(pen, channel, row, sighting, by=workplace.worker)


async def _read_again(pen: Connection, channel: Channel, provider: Provider, rows: list[Overdue], *, by: str) -> None:
    """Rows whose worker died between keeping the reply and settling: the same reading gives the same verdict."""
    pending = [(row.id, row.reply) for row in rows if row.state == State.PENDING and row.reply]
    if pending:
        await ledger.keep_and_settle(
            pen,
            replies=[],
            verdicts=[(id, verdict_of(reply, provider)) for id, reply in pending],
            by=f"sweeper {by}",
            max_attempts=int(setting(channel, "max_attempts")),
            can_look_up=provider.can_look_up(),
        )


async def _weigh(pen: Connection, channel: Channel, row: Overdue, sighting: Sighting, *, by: str) -> None:
    """What one look-up changes: proof settles; anything else is asked again until the window ends."""
    by = f"sweeper {by}"
    if sighting.answer is Answer.FOUND:
        await ledger.prove(pen, row.id, seen=row.state, sighting=sighting, by=by)
        return
    window = timedelta(seconds=float(setting(channel, "settle_window")))
    interval = max(1.0, min(30.0, window.total_seconds() / 10))
    await ledger.ask_again(pen, row.id, seen=row.state, sighting=sighting, by=by, seconds=interval)
    if row.now > row.quiet_since + window:
        await _hand_over(pen, row, reason="no answer was kept, and look-ups did not find it", by=by)


async def _hand_over(pen: Connection, row: Overdue, *, reason: str, by: str) -> None:
    if row.state == State.PENDING:
        await ledger.give_up(pen, row.id, reason=reason, by=by)
    else:
        await ledger.stop_asking(pen, row.id)


async def _read(pen: Connection, ids: list[int]) -> list[Overdue]:
    rows = []
    async for id, state, channel, key, epoch, deadline, settled_at, kind, raw, note, now in await pen.execute(
        ledger.SQL["read"], {"ids": ids}
    ):
        reply = Reply(ReplyKind(kind), bytes(raw or b""), note) if kind else None
        rows.append(Overdue(id, State(state), channel, key, epoch, deadline, settled_at, reply, now))
    return rows
