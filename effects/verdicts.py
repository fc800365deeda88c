"""What a reply means: the small values that providers, sender and sweeper hand to each other. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from effects.states import State

BACK_OFF = 10.0  # seconds before another attempt where the provider names none
LONGEST_WAIT = 3600.0  # seconds; a longer Retry-After is honoured up to here, and asked again then


LONGEST_WORD = 2000  # characters of a receipt, a reason or a note


def storable(text: str) -> str:
    """The text without what a database or a page cannot carry (NUL, lone surrogates), and not longer than is useful."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:LONGEST_WORD]


class ReplyKind(StrEnum):
    """How the call ended, as far as this machine can tell."""

    ANSWERED = "answered"  # a complete answer came back
    LOST = "lost"  # bytes may have left; no complete answer came back
    NOT_SENT = "not sent"  # nothing left this machine
    WITHHELD = "withheld"  # our own check stopped it before the first byte, for good


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, kept before anybody reads it. `raw` is every byte received, in order; `note` is our own word."""

    kind: ReplyKind
    raw: bytes = b""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply means for the ledger.

    `receipt` lets us find the effect at the provider later. `transient` says that a refusal may pass, so that another attempt is
    allowed; `retry_after` is the provider's own word in seconds. `pauses`: the whole channel should rest; `until_lifted`: until a
    person lifts that. `counts` is false for an attempt that never left this machine: it uses up none of those allowed.
    `challenge`: it was created, and completes only when this is answered in time; the row stays pending until then.
    """

    state: State
    reason: str
    receipt: str = ""
    transient: bool = False
    retry_after: float | None = None
    pauses: bool = False
    until_lifted: bool = False
    counts: bool = True
    challenge: str = ""

    @property
    def retry_in(self) -> float | None:
        """Seconds until another attempt is allowed; none: no machine tries this again."""
        if not self.transient:
            return None
        return min(self.retry_after if self.retry_after is not None else BACK_OFF, LONGEST_WAIT)


def done(receipt: str, reason: str = "accepted") -> Verdict:
    """The provider took it and named a receipt."""
    return Verdict(State.DONE, reason, receipt=receipt)


def unknown(reason: str) -> Verdict:
    """No answer we can stand on."""
    return Verdict(State.UNKNOWN, reason)


def accepted(reason: str) -> Verdict:
    """The provider took it to decide later: the row stays pending, and the provider is asked what became of it."""
    return Verdict(State.PENDING, reason)


def challenged(reason: str, *, challenge: str, receipt: str = "") -> Verdict:
    """The provider created it, and completes it when its challenge is answered: the row stays pending until that is settled."""
    return Verdict(State.PENDING, reason, receipt=receipt, challenge=challenge)


def stranded(reason: str, *, receipt: str = "") -> Verdict:
    """It exists at the provider, and can never complete."""
    return Verdict(State.STRANDED, reason, receipt=receipt)


def rejected(reason: str, *, pauses: bool = False) -> Verdict:
    """Definitely refused, for good: nothing was created and trying again would not help. A pause lasts until a person lifts it."""
    return Verdict(State.FAILED, reason, pauses=pauses, until_lifted=pauses)


def later(reason: str, *, after: float | None = None, pauses: bool = False, until_lifted: bool = False) -> Verdict:
    """Definitely not taken this time: nothing was created and another attempt may pass."""
    return Verdict(State.FAILED, reason, transient=True, retry_after=after, pauses=pauses, until_lifted=until_lifted)


def not_sent(reason: str) -> Verdict:
    """Nothing left this machine, so another attempt is as good as the first: it waits longer each time and counts for nothing."""
    return Verdict(State.FAILED, reason, transient=True, counts=False)
