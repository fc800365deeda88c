"""The checker: the invariants of the design, over one history. Pure; shares no code with the product.

`check` gives every violation found. An invariant that the history cannot speak of says nothing, which is what coverage is for.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.endings import i17, i18, i19, i20, i21, i22, i23
from tests.chaos.facts import Facts
from tests.chaos.history import History
from tests.chaos.safety import Found, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15, i16

RULES: tuple[Callable[[Facts], Found], ...] = (
    i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15, i16, i17, i18, i19, i20, i21, i22, i23,
)  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """One invariant that does not hold, of whom, and how."""

    invariant: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.subject}: {self.text}"


def check(history: History) -> list[Violation]:
    """Every violation in this history, in the order of the invariants."""
    facts = Facts(history)
    return [Violation(rule.__name__.upper(), subject, text) for rule in RULES for subject, text in rule(facts)]
