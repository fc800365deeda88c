"""One-shot challenges: the provider created the effect, and completes it when its challenge is answered in time. Creates nothing.

An answer is given once, by whoever committed first that they would: the worker right after the reply that held the challenge was
kept, or the sweeper for a worker that died before. It is given again only where nothing had left this machine. Begun and never
heard of is unknown; out of time is stranded.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from effects import failpoints, ledger
from effects.connections import Connection, insist
from effects.providers.base import Challenger, Lost, NotSent, Provider
from effects.reading import verdict_of_answer
from effects.verdicts import Reply, ReplyKind, Verdict, accepted

log = logging.getLogger(__name__)

TOO_LATE = Reply(ReplyKind.NOT_SENT, note="its time was over")


@dataclass
class Answering:
    """The answers of one channel in one piece of work: calls go side by side, and one connection writes them down in turn."""

    pen: Callable[[str], Awaitable[Connection]]  # the connection for one use; a broken one is replaced
    provider: Provider
    by: str
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, id: int, reply: Reply, challenge: str) -> bool:
        """Answer the challenge that `reply` holds, unless somebody has, and settle what comes of it; false when it is another's.

        A fault of ours leaves the row as it stands, and its neighbours alone: the sweeper reads what was kept.
        """
        if not isinstance(self.provider, Challenger):
            raise TypeError(f"the provider {self.provider.name} takes no answers")
        try:
            return await self._answer(self.provider, id, reply, challenge)
        except Exception:
            log.exception("effect %s: the answer to its challenge was not carried through", id)
            return False

    async def _answer(self, provider: Challenger, id: int, reply: Reply, challenge: str) -> bool:
        async with self._writing:
            pen, begun = await self.pen("answering"), time.monotonic()
            left = await ledger.begin_challenge(pen, id, by=self.by, within=provider.challenge_within)
            if left is None and not await ledger.forgo_challenge(pen, id, TOO_LATE, by=self.by):
                return False
        if left is None:
            await self._settle(id, verdict_of_answer(reply, TOO_LATE, self.provider))
            return True
        failpoints.reach("challenged")
        answer = await _call(provider, challenge, not_after=begun + min(left, ledger.START_WITHIN))
        failpoints.reach("challenge-answered")
        await self._write(lambda pen: ledger.keep_challenge(pen, id, answer))
        failpoints.reach("challenge-kept")
        if answer.kind is ReplyKind.NOT_SENT:  # the sweeper answers, while there is time
            await self._settle(id, accepted(f"created; its challenge is not answered yet: {answer.note}"))
        else:
            await self._settle(id, verdict_of_answer(reply, answer, self.provider))
        return True

    async def go_on(self, id: int, reply: Reply, challenge: str, answer: Reply | None) -> None:
        """What a dead worker left: settle by the reply to the answer that it kept, or answer in its place."""
        if answer and answer.kind is not ReplyKind.NOT_SENT:
            await self._settle(id, verdict_of_answer(reply, answer, self.provider))
        else:
            await self.answer(id, reply, challenge)

    async def _settle(self, id: int, verdict: Verdict) -> None:
        can_look_up = self.provider.can_look_up()
        await self._write(
            lambda pen: ledger.keep_and_settle(
                pen, replies=[], verdicts=[(id, verdict)], by=self.by, max_attempts=1, can_look_up=can_look_up
            )
        )

    async def _write(self, write: Callable[[Connection], Awaitable[None]]) -> None:
        async with self._writing:
            await insist(lambda: self.pen("answering"), write)


async def _call(provider: Challenger, challenge: str, *, not_after: float) -> Reply:
    """The reply to the answer, given once. Whoever stood still until `not_after` writes nothing: somebody else has spoken for the row."""
    try:
        return await provider.answer(challenge, not_after=not_after)
    except NotSent as error:
        return Reply(ReplyKind.NOT_SENT, note=str(error))
    except Lost as error:
        return Reply(ReplyKind.LOST, raw=error.raw, note=str(error))
    except Exception as error:  # a fault of ours after an unknown number of bytes
        return Reply(ReplyKind.LOST, note=f"unexpected {type(error).__name__}: {error}")
