"""The hot path: reserve, call, keep, read and settle, many rows in flight on one event loop.

Two tasks and a window. The reserver takes rows for as much of the window as is free and starts their calls once they are committed as
pending. The recorder commits raw replies in small groups, and in the same commit the verdicts read from the group before: a raw reply is
on disk before anybody reads it, and costs no commit of its own. What is reserved and not settled never exceeds the window, so that
is the most a killed worker leaves behind.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from effects import ledger
from effects.ledger import Claim, Connection, Origin, Won
from effects.providers.base import Delivery, Lost, NotSent, Provider
from effects.reading import verdict_of
from effects.verdicts import Reply, ReplyKind

LINGER = 0.004  # seconds a small group of replies waits for company before its commit

# Rows that may be sent now, at most so many; none left, or none allowed: an empty sequence. Asked between windows.
Source = Callable[[int], Awaitable[Sequence[Claim]]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds one sending: rows in flight, attempts, calls a second, seconds until the deadline of a row, and of this turn."""

    window: int
    max_attempts: int
    deadline: float
    rate: float = 0.0
    turn: float = 5.0


@dataclass
class Sending:
    """One turn at one channel: `await Sending(...).run()` returns the number of rows that were reserved."""

    source: Source
    provider: Provider
    origin: Origin
    limits: Limits
    reserving: Connection
    recording: Connection
    worker: str
    unsettled: int = 0
    reserved: int = 0
    _replies: list[tuple[int, Reply]] = field(default_factory=list)
    _exhausted: bool = False
    _freed: asyncio.Event = field(default_factory=asyncio.Event)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        async with asyncio.TaskGroup() as calls:
            calls.create_task(self._record())
            await self._reserve(calls)
            self._exhausted = True
            self._answered.set()
        return self.reserved

    async def _reserve(self, calls: asyncio.TaskGroup) -> None:
        """Refill the window until the source is empty or the turn is over."""
        ends = time.monotonic() + self.limits.turn
        while time.monotonic() < ends:
            free = self.limits.window - self.unsettled
            if free < max(1, self.limits.window // 4):
                self._freed.clear()
                await self._freed.wait()
                continue
            claims = await self.source(await self._paced(free))
            if not claims:
                return
            claimed_at = time.monotonic()
            won = await ledger.reserve(self.reserving, claims, of=self.origin, worker=self.worker, deadline=self.limits.deadline)
            self.unsettled += len(won)
            self.reserved += len(won)
            for row in won:
                calls.create_task(self._call(row, claimed_at))

    async def _paced(self, free: int) -> int:
        """How many of `free` rows may start now; waits for their slots where the channel has a rate."""
        rate = self.limits.rate
        if not rate:
            return free
        n = max(1, min(free, int(rate / 4)))
        await asyncio.sleep(await ledger.take_slots(self.reserving, self.origin.channel_id, n=n, rate=rate))
        return n

    async def _call(self, won: Won, claimed_at: float) -> None:
        reply = await self._reply(won, claimed_at)
        self._replies.append((won.id, reply))  # after the wait: the recorder may have taken the list meanwhile
        self._answered.set()

    async def _reply(self, won: Won, claimed_at: float) -> Reply:
        """One call, or none: the last look before the first byte."""
        claim = won.claim
        if time.monotonic() - claimed_at > ledger.START_WITHIN:
            return Reply(ReplyKind.NOT_SENT, note="the claim was too old when its turn came; nothing was sent")
        if claim.content.digest() != claim.content_digest:
            return Reply(ReplyKind.WITHHELD, note="the content is not what was approved; nothing was sent")
        try:
            return await self.provider.send(Delivery(claim.key, claim.epoch, won.attempt, claim.content))
        except NotSent as error:
            return Reply(ReplyKind.NOT_SENT, note=str(error))
        except Lost as error:
            return Reply(ReplyKind.LOST, raw=error.raw, note=str(error))
        except Exception as error:  # a fault of ours after an unknown number of bytes
            return Reply(ReplyKind.LOST, note=f"unexpected {type(error).__name__}: {error}")

    async def _record(self) -> None:
        """Keep and settle until nothing is reserved and nothing will be."""
        kept: list[tuple[int, Reply]] = []
        while not (self._exhausted and not self.unsettled):
            if not self._replies and not kept:
                self._answered.clear()
                await self._answered.wait()
            if len(self._replies) < min(self.limits.window // 4, self.unsettled - len(kept)):
                await asyncio.sleep(LINGER)
            replies, self._replies = self._replies, []
            verdicts = [(id, verdict_of(reply, self.provider)) for id, reply in kept]
            await ledger.keep_and_settle(
                self.recording,
                replies=replies,
                verdicts=verdicts,
                by=self.worker,
                max_attempts=self.limits.max_attempts,
                can_look_up=self.provider.can_look_up(),
            )
            self.unsettled -= len(verdicts)
            kept = replies
            self._freed.set()
            for _, verdict in verdicts:
                if verdict.pauses:
                    await self._rest(verdict.retry_after, verdict.transient, verdict.reason)

    async def _rest(self, seconds: float | None, transient: bool, reason: str) -> None:
        """The provider asked this channel to wait (or refused its credentials: then until a person lifts it)."""
        await ledger.rest(
            self.recording,
            workspace_id=self.origin.workspace_id,
            channel_id=self.origin.channel_id,
            seconds=min(max(seconds if seconds is not None else 30.0, 1.0), 3600.0) if transient else None,
            reason=reason,
            by=self.worker,
        )
