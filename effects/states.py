"""The six states of an effect and the ten arrows between them. Pure; `docs/ledger.md` draws the same picture.

The database holds the same arrows in `effects/sql/schema.sql`, and a test drives every pair of states through both.
"""

from enum import StrEnum


class State(StrEnum):
    """Where an effect stands; the sentences are what a person reads on screen."""

    PENDING = "pending"  # reserved before the call; blocks the key
    DONE = "done"  # the provider took it and gave a receipt; blocks the key
    UNKNOWN = "unknown"  # it may have happened; only proof or a person settles it; blocks the key
    FAILED = "failed"  # it did not happen; frees the key
    STRANDED = "stranded"  # it exists at the provider and can never complete; blocks the key
    REVOKED = "revoked"  # taken back by a person; frees the key


BLOCKING = frozenset({State.PENDING, State.DONE, State.UNKNOWN, State.STRANDED})
FINAL = frozenset({State.DONE, State.FAILED, State.REVOKED})
WAITS_FOR_A_PERSON = frozenset({State.UNKNOWN, State.STRANDED})

# letter: (from, to). Arrow a is birth: (nothing) -> pending.
ARROWS: dict[str, tuple[State, State]] = {
    "b": (State.PENDING, State.DONE),
    "c": (State.PENDING, State.FAILED),
    "d": (State.PENDING, State.UNKNOWN),
    "e": (State.PENDING, State.STRANDED),
    "f": (State.UNKNOWN, State.DONE),
    "g": (State.UNKNOWN, State.FAILED),
    "h": (State.UNKNOWN, State.STRANDED),
    "i": (State.UNKNOWN, State.REVOKED),
    "j": (State.STRANDED, State.REVOKED),
}

# What the machine may do alone: settle what it reserved, and prove an unknown by a look-up.
MACHINE_ARROWS = frozenset("bcdefh")


def may_go(before: State, after: State) -> bool:
    """True when an arrow leads from `before` to `after`."""
    return (before, after) in ARROWS.values()


def ways_out(state: State) -> tuple[State, ...]:
    """The states that an arrow leads to from `state`, in the order of their letters."""
    return tuple(after for before, after in ARROWS.values() if before == state)
