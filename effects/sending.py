"""The hot path: reserve, call, keep, read and settle, many rows in flight on one event loop.

Two tasks and a window. The reserver takes rows for idle connections only (half the window; the other half is being written
down) and starts their calls once they are committed as pending. The recorder commits raw replies in small groups, and in the
same commit the verdicts read from the group before: a raw reply is on disk before anybody reads it, and costs no commit of its
own. What is reserved and not settled never exceeds the window, so that is the most a killed worker leaves behind.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from effects import failpoints, ledger
from effects.answering import Answering
from effects.connections import Connection, insist
from effects.ledger import Claim, Origin, Won
from effects.providers.base import Delivery, Lost, NotSent, Provider
from effects.reading import verdict_of
from effects.verdicts import LONGEST_WAIT, Reply, ReplyKind, Verdict

REST = 30.0  # seconds a channel rests when its provider names no time
PATIENT = 1.0  # seconds a turn waits for the slot of a channel with a rate; a later one is another turn's
LINGER = 0.010  # seconds a small group of replies waits for company before its commit

# Rows that may be sent now, at most so many; none left, or none allowed: an empty sequence. Asked before each reservation.
Source = Callable[[int], Awaitable[Sequence[Claim]]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds one sending: rows in flight, attempts, calls a second, seconds until the deadline of a row, and of this turn."""

    window: int
    max_attempts: int
    deadline: float
    rate: float = 0.0
    turn: float = 5.0

    @property
    def connections(self) -> int:
        """Calls in flight at most."""
        return max(1, self.window // 2)


@dataclass
class Sending:
    """One turn at one channel: `await Sending(...).run()` returns the number of rows that were reserved."""

    source: Source
    provider: Provider
    origin: Origin
    limits: Limits
    pen: Callable[[str], Awaitable[Connection]]  # the connection for one use; a broken one is replaced
    worker: str
    calling: int = 0
    unsettled: int = 0
    reserved: int = 0
    _replies: list[tuple[int, Reply]] = field(default_factory=list)
    _exhausted: bool = False
    _freed: asyncio.Event = field(default_factory=asyncio.Event)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        trouble: Exception | None = None
        async with asyncio.TaskGroup() as calls:
            calls.create_task(self._record(calls))
            try:
                await self._reserve(calls)
            except Exception as error:  # calls in flight go on, and their replies are kept
                trouble = error
            self._exhausted = True
            self._answered.set()
        if trouble:
            raise trouble
        return self.reserved

    async def _reserve(self, calls: asyncio.TaskGroup) -> None:
        """Refill the window until the source is empty or the turn is over."""
        ends = time.monotonic() + self.limits.turn
        while time.monotonic() < ends:
            free = self._idle()
            if free < max(1, self.limits.connections // 4):
                self._freed.clear()
                await self._freed.wait()
                continue
            paced = await self._paced(free)
            claims = await self.source(paced) if paced else []
            if not claims:
                return
            claimed_at = time.monotonic()
            pen, deadline = await self.pen("reserving"), self.limits.deadline
            won = await ledger.reserve(pen, claims, of=self.origin, worker=self.worker, deadline=deadline)
            self.calling += len(won)
            self.unsettled += len(won)
            self.reserved += len(won)
            for row in won:
                calls.create_task(self._call(row, claimed_at))

    def _idle(self) -> int:
        """Connections without a call, as far as the window has room: nothing is claimed ahead of its turn."""
        return min(self.limits.connections - self.calling, self.limits.window - self.unsettled)

    async def _paced(self, free: int) -> int:
        """How many of `free` rows may start now; where the channel has a rate, waits for their slots, or gives none that are far."""
        rate = self.limits.rate
        if not rate:
            return free
        n = max(1, min(free, int(rate / 4)))
        wait = await ledger.take_slots(await self.pen("reserving"), self.origin.channel_id, n=n, rate=rate, within=PATIENT)
        if wait is None:
            return 0
        await asyncio.sleep(wait)
        return n

    async def _call(self, won: Won, claimed_at: float) -> None:
        reply = await self._reply(won, claimed_at)
        self.calling -= 1
        self._freed.set()
        self._replies.append((won.id, reply))  # after the wait: the recorder may have taken the list meanwhile
        self._answered.set()

    async def _reply(self, won: Won, claimed_at: float) -> Reply:
        """One call, or none: the last look before the first byte."""
        claim = won.claim
        try:
            failpoints.reach("calling", of=claim.content.to)
            if time.monotonic() - claimed_at > ledger.START_WITHIN:
                return Reply(ReplyKind.NOT_SENT, note="the claim was too old when its turn came; nothing was sent")
            if claim.withheld:
                return Reply(ReplyKind.WITHHELD, note=claim.withheld)
            if claim.content.digest() != claim.content_digest:
                return Reply(ReplyKind.WITHHELD, note="the content is not what was approved; nothing was sent")
            not_after = claimed_at + ledger.START_WITHIN + self.provider.preamble
            reply = await self.provider.send(Delivery(claim.key, claim.epoch, won.attempt, claim.content, not_after))
            failpoints.reach("answered", of=claim.content.to)
            return reply
        except NotSent as error:
            return Reply(ReplyKind.NOT_SENT, note=str(error))
        except Lost as error:
            return Reply(ReplyKind.LOST, raw=error.raw, note=str(error))
        except Exception as error:  # a fault of ours after an unknown number of bytes
            return Reply(ReplyKind.LOST, note=f"unexpected {type(error).__name__}: {error}")

    async def _record(self, calls: asyncio.TaskGroup) -> None:
        """Keep and settle until nothing is reserved and nothing will be."""
        answering = Answering(self.pen, self.provider, self.worker)
        kept: list[tuple[int, Reply]] = []
        while not (self._exhausted and not self.unsettled):
            if not self._replies and not kept:
                self._answered.clear()
                await self._answered.wait()
            if len(self._replies) < min(self.limits.window // 4, self.unsettled - len(kept)):
                await asyncio.sleep(LINGER)
            replies, self._replies = self._replies, []
            verdicts = [(id, verdict_of(reply, self.provider)) for id, reply in kept]
            await self._write_down(replies, verdicts)
            self.unsettled -= len(verdicts)
            for (id, reply), (_, verdict) in zip(kept, verdicts, strict=True):
                if verdict.challenge:
                    self.unsettled += 1
                    calls.create_task(self._answer(answering, id, reply, verdict.challenge))
            kept = replies
            self._freed.set()
            for _, verdict in verdicts:
                if verdict.pauses:
                    await self._rest(verdict)

    async def _answer(self, answering: Answering, id: int, reply: Reply, challenge: str) -> None:
        """What was created completes when this is answered; until then it is in the window."""
        await answering.answer(id, reply, challenge)
        self.unsettled -= 1
        self._freed.set()
        self._answered.set()

    async def _write_down(self, replies: Sequence[tuple[int, Reply]], verdicts: Sequence[tuple[int, Verdict]]) -> None:
        """One commit."""

        async def write(pen: Connection) -> None:
            await ledger.keep_and_settle(
                pen,
                replies=replies,
                verdicts=verdicts,
                by=self.worker,
                max_attempts=self.limits.max_attempts,
                can_look_up=self.provider.can_look_up(),
            )

        await insist(lambda: self.pen("recording"), write)

    async def _rest(self, verdict: Verdict) -> None:
        """The provider asked this channel to wait, or refused its credentials: then until a person lifts it."""
        asked = verdict.retry_after if verdict.retry_after is not None else REST
        await ledger.rest(
            await self.pen("recording"),
            workspace_id=self.origin.workspace_id,
            channel_id=self.origin.channel_id,
            seconds=None if verdict.until_lifted else min(max(asked, 1.0), LONGEST_WAIT),
            reason=verdict.reason,
            by=self.worker,
        )
