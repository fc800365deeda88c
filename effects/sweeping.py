"""The sweeper: speaks for rows whose worker no longer can. It reads kept replies again and asks providers; it never sends.

A pending row past its deadline is read again from its kept reply, else looked up; a miss right after a crash proves nothing, so the
provider is asked again and again through the channel's settle window. Then the row is unknown and a person has it.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from effects import ledger
from effects.answering import Answering
from effects.applying import apply_callbacks
from effects.channels import setting
from effects.connections import GONE, Connection
from effects.looking import look_up
from effects.models import Channel
from effects.providers.base import Answer, Provider, Sighting
from effects.reading import verdict_of
from effects.states import State
from effects.verdicts import Reply, ReplyKind
from effects.workplace import Pens, Workplace

log = logging.getLogger(__name__)

MOST = 64  # rows of one channel in one sweep
CHANNELS_AT_ONCE = 8
AT_ONCE = 16  # look-ups in flight, for each channel
UNDISTURBED = 15.0  # seconds for which a channel is left to one sweeper


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
    begun_at: datetime | None  # when somebody began to answer its challenge
    answer: Reply | None  # the kept reply to that

    @property
    def is_awaited(self) -> bool:
        """True when the provider accepted it, to decide later: a pending row that no kept reply settles."""
        return self.state == State.PENDING and self.reply is not None

    @property
    def silence(self) -> str:
        """What was not heard, in words."""
        if self.begun_at:
            return "it was created, its challenge was answered, and the reply to that was not kept"
        return "it was accepted, and never decided" if self.is_awaited else "no answer was kept"

    @property
    def quiet_since(self) -> datetime:
        """From when the settle window counts."""
        return self.settled_at or self.deadline


async def sweep(workplace: Workplace, *, most: int = MOST) -> int:
    """Look once at what is overdue, then at what providers told; returns how many rows and callbacks were looked at.

    Channels are swept side by side, each by one sweeper.
    """
    async with workplace.pens() as pen:
        overdue = await ledger.overdue(await pen("sweeping"), most=most)
    turnstile = asyncio.Semaphore(CHANNELS_AT_ONCE)
    rows = sum(await asyncio.gather(*(_sweep_channel(workplace, turnstile, id, ids) for id, ids in overdue.items())))
    return rows + await apply_callbacks(workplace)


async def _sweep_channel(workplace: Workplace, turnstile: asyncio.Semaphore, channel_id: int, ids: list[int]) -> int:
    """The overdue rows of one channel; 0 when somebody else is at it. One channel's trouble is nobody else's."""
    async with turnstile, workplace.pens() as pen:
        if not await ledger.take_sweep(await pen("sweeping"), channel_id, seconds=UNDISTURBED):
            return 0
        rows = await _read(await pen("sweeping"), ids)
        try:
            await _look_at(workplace, pen, channel_id, rows)
        except GONE:  # the database's trouble, not the channel's: the next sweep goes on from here
            raise
        except Exception as error:  # a key rotated away, say
            log.exception("channel %s could not be swept", channel_id)
            sighting = Sighting(Answer.INCONCLUSIVE, raw=f"{type(error).__name__}: {error}".encode(errors="replace"))
            for row in rows:
                await ledger.ask_again(
                    await pen("sweeping"), row.id, seen=row.state, sighting=sighting, by=workplace.worker, seconds=30
                )
        finally:
            await ledger.leave_sweep(await pen("sweeping"), channel_id)
        return len(rows)


async def _look_at(workplace: Workplace, pens: Pens, channel_id: int, rows: list[Overdue]) -> None:
    pen = await pens("sweeping")
    channel = await workplace.channel(pen, channel_id)
    provider = await workplace.provider(channel)
    silent = await _read_again(pens, channel, provider, rows, by=workplace.worker)
    if not provider.can_look_up():
        for row in silent:
            await _hand_over(
                pen, row, reason=f"{row.silence}, and this provider cannot be asked", by=f"sweeper {workplace.worker}"
            )
        return
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def ask(row: Overdue) -> Sighting:
        async with turnstile:
            return await look_up(provider, row.key, row.epoch, row.reply)

    sightings = await asyncio.gather(*(ask(row) for row in silent))
    for row, sighting in zip(silent, sightings, strict=True):
        await _weigh(pen, channel, row, sighting, by=workplace.worker)


async def _read_again(pens: Pens, channel: Channel, provider: Provider, rows: list[Overdue], *, by: str) -> list[Overdue]:
    """Settle rows whose worker died between keeping the reply and settling: the same reading gives the same verdict.

    Returns the rows that no kept reply decides: none came, it is unknown what it means, or the provider decides later. What only
    waits for the answer to its challenge is answered here.
    """
    by = f"sweeper {by}"
    verdicts = {row.id: verdict_of(row.reply, provider) for row in rows if row.reply and row.state == State.PENDING}
    decided = [(id, verdict) for id, verdict in verdicts.items() if verdict.state is not State.PENDING]
    if decided:
        await ledger.keep_and_settle(
            await pens("sweeping"),
            replies=[],
            verdicts=decided,
            by=by,
            max_attempts=int(setting(channel, "max_attempts")),
            can_look_up=provider.can_look_up(),
        )
    challenges = {id: verdict.challenge for id, verdict in verdicts.items() if verdict.challenge}
    lost = await _answer(Answering(pens, provider, by), [row for row in rows if row.id in challenges], challenges, channel)
    done_with = {id for id, _ in decided} | challenges.keys() - lost
    return [row for row in rows if row.id not in done_with]


async def _answer(answering: Answering, rows: list[Overdue], challenges: dict[int, str], channel: Channel) -> set[int]:
    """Answer what a dead worker left unanswered, and settle by the answers it kept. Returns those whose reply nobody will keep any more."""
    takes = timedelta(seconds=ledger.START_WITHIN + float(setting(channel, "timeout")) + ledger.SLACK)
    under_way = {row.id: row.begun_at for row in rows if row.begun_at and not row.answer}
    await asyncio.gather(
        *(
            answering.go_on(row.id, row.reply, challenges[row.id], row.answer)
            for row in rows
            if row.reply and row.id not in under_way
        )
    )
    return {row.id for row in rows if row.id in under_way and row.now > under_way[row.id] + takes}


async def _weigh(pen: Connection, channel: Channel, row: Overdue, sighting: Sighting, *, by: str) -> None:
    """What one look-up changes: proof settles; anything else is asked again until the window ends."""
    by = f"sweeper {by}"
    if sighting.answer is Answer.FOUND:
        await ledger.prove(pen, row.id, seen=row.state, sighting=sighting, by=by)
        return
    if sighting.answer is Answer.REFUSED and row.is_awaited:
        await ledger.refuse(pen, row.id, sighting=sighting, by=by)
        return
    window = timedelta(seconds=float(setting(channel, "settle_window")))
    interval = max(1.0, min(30.0, window.total_seconds() / 10))
    await ledger.ask_again(pen, row.id, seen=row.state, sighting=sighting, by=by, seconds=interval)
    if row.now > row.quiet_since + window:
        told = row.silence if row.is_awaited else f"{row.silence}, and look-ups did not find it"
        await _hand_over(pen, row, reason=told, by=by)


async def _hand_over(pen: Connection, row: Overdue, *, reason: str, by: str) -> None:
    if row.state == State.PENDING:
        await ledger.give_up(pen, row.id, reason=reason, by=by, awaited=row.is_awaited)
    else:
        await ledger.stop_asking(pen, row.id)


async def _read(pen: Connection, ids: list[int]) -> list[Overdue]:
    rows = []
    async for id, state, channel, key, epoch, deadline, settled_at, kind, raw, note, now, begun_at, *answer in await pen.execute(
        ledger.SQL["read"], {"ids": ids}
    ):
        reply = _kept(kind, raw, note)
        rows.append(Overdue(id, State(state), channel, key, epoch, deadline, settled_at, reply, now, begun_at, _kept(*answer)))
    return rows


def _kept(kind: str | None, raw: bytes | None, note: str | None) -> Reply | None:
    return Reply(ReplyKind(kind), bytes(raw or b""), note or "") if kind else None
