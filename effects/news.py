"""What a callback is worth: one table from (state, what was told) to what becomes of it. Pure; `docs/callbacks.md` shows the same.

A callback may prove, and never disproves what is settled: no `done` becomes `failed` here. What contradicts the ledger is news, and
news is for a person.
"""

from dataclasses import dataclass
from enum import StrEnum

from effects.states import State


class Kind(StrEnum):
    """What a provider may tell later."""

    DELIVERED = "delivered"  # it exists there and arrived
    BOUNCED = "bounced"  # it existed there and came back
    REJECTED = "rejected"  # they decided against it: nothing was created


class Outcome(StrEnum):
    """What a callback came to. None of these yet: it waits until its effect is settled."""

    SETTLED = "settled"  # it was proof, and moved the effect
    AGREED = "agreed"  # the ledger said so already
    CONTRARY = "contrary"  # it contradicts the ledger: news, until a person has seen it
    REPEATED = "repeated"  # news that was told before


@dataclass(frozen=True, slots=True)
class Told:
    """One callback beside the effect that it speaks of.

    `exact`: it names the attempt, or there is but one. `is_awaited`: a pending effect that the provider accepted, to decide later.
    `is_left`: a pending effect past its deadline without a reply, so that nobody is still making the call.
    """

    kind: Kind
    state: State
    receipt: str = ""
    exact: bool = True
    is_awaited: bool = False
    is_left: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What becomes of a callback, and where its effect goes, if anywhere."""

    outcome: Outcome
    to: State | None = None


def weigh(told: Told) -> Finding | None:
    """What this callback comes to; none: nothing yet, look again later.

    On an open effect only proof counts. `delivered` needs a receipt, as every `done` does. `rejected` frees the key only of the
    attempt that the provider itself keeps waiting: an unknown effect is failed by a person alone (arrow g).
    """
    if told.state in (State.PENDING, State.UNKNOWN):
        may_be_proven = told.state is State.UNKNOWN or told.is_awaited or told.is_left
        if told.kind is Kind.DELIVERED and told.receipt and may_be_proven:
            return Finding(Outcome.SETTLED, State.DONE)
        if told.kind is Kind.REJECTED and told.exact and told.is_awaited:
            return Finding(Outcome.SETTLED, State.FAILED)
        return None
    agrees = (told.state is State.DONE) == (told.kind is Kind.DELIVERED)
    return Finding(Outcome.AGREED if agrees else Outcome.CONTRARY)
