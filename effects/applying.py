"""Late proof: what providers told later is applied to the ledger, by the sweeper, with the machine's pen. Nothing is sent or asked here.

The web keeps a signed callback and may not settle; this reads it together with its effect and does what `effects.news` says. A
callback that proves nothing about an open effect waits, and is looked at again once that effect may have moved.
"""

import logging
from dataclasses import dataclass

from effects import ledger
from effects.connections import GONE, Connection
from effects.news import Kind, Told, weigh
from effects.reading import verdict_of
from effects.states import State
from effects.verdicts import Reply, ReplyKind
from effects.workplace import Workplace

log = logging.getLogger(__name__)

MOST = 256  # callbacks in one sweep; each is a short statement, and nobody is asked
REASONS = {State.DONE: "the provider called back: delivered", State.FAILED: "accepted, then refused: the provider called back"}


@dataclass(frozen=True, slots=True)
class Due:
    """A kept callback, and the effect that it speaks of as it stands now; `reply` only while that is pending."""

    id: int
    channel_id: int
    effect_id: int
    kind: Kind
    receipt: str
    exact: bool
    state: State
    past_deadline: bool
    reply: Reply | None


async def apply_callbacks(workplace: Workplace, *, most: int = MOST) -> int:
    """Look once at the callbacks that are due; returns how many. One that cannot be weighed is put off and holds up no other."""
    async with workplace.pens() as pens:
        pen = await pens("sweeping")
        due = await _read(pen, most)
        for one in due:
            try:
                await _apply(workplace, pen, one)
            except GONE:  # the database's trouble, not the callback's: the next sweep goes on from here
                raise
            except Exception:  # its channel cannot be opened: a key rotated away, say
                log.exception("callback %s could not be applied", one.id)
                await pen.execute(ledger.SQL["put_off_callback"], {"callback": one.id})
    return len(due)


async def _apply(workplace: Workplace, pen: Connection, one: Due) -> None:
    awaited = one.reply is not None and await _said_later(workplace, pen, one)
    left = one.past_deadline and one.reply is None
    finding = weigh(Told(one.kind, one.state, one.receipt, one.exact, is_awaited=awaited, is_left=left))
    if finding is None:
        await pen.execute(ledger.SQL["put_off_callback"], {"callback": one.id})
    elif finding.to is None:
        await pen.execute(ledger.SQL["conclude_callback"], {"callback": one.id, "outcome": finding.outcome.value})
    else:  # whoever was first settled the effect; the callback is still due, and is held against what it is then
        receipt = one.receipt if finding.to is State.DONE else ""
        await ledger.settle_by_callback(
            pen, one.id, one.effect_id, seen=one.state, to=finding.to, receipt=receipt, reason=REASONS[finding.to],
            by=f"sweeper {workplace.worker}", awaited=awaited,
        )  # fmt: skip


async def _said_later(workplace: Workplace, pen: Connection, one: Due) -> bool:
    """True when the reply that was kept says that the provider decides later, and asks nothing of us before."""
    assert one.reply is not None
    provider = await workplace.provider(await workplace.channel(pen, one.channel_id))
    verdict = verdict_of(one.reply, provider)
    return verdict.state is State.PENDING and not verdict.challenge


async def _read(pen: Connection, most: int) -> list[Due]:
    found = []
    cursor = await pen.execute(ledger.SQL["due_callbacks"], {"most": most})
    for id, channel, effect, kind, receipt, exact, state, past, reply_kind, raw, note in await cursor.fetchall():
        reply = Reply(ReplyKind(reply_kind), bytes(raw or b""), note) if reply_kind else None
        found.append(Due(id, channel, effect, Kind(kind), receipt, exact, State(state), past, reply))
    return found
