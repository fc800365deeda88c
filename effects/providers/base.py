"""What a provider is: what it can do, how it sends, and what its replies mean.

A provider knows its client library and this file; it never sees a model, a transaction or another provider. Client retries are
off: one `send` is at most one attempt to create one effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any, ClassVar, Protocol, runtime_checkable

from effects.content import Content
from effects.verdicts import Reply, Verdict


class NotSent(Exception):
    """Nothing left this machine: the effect certainly did not happen."""


class Lost(Exception):
    """Bytes may have left and no complete answer came back. `raw` is what did come."""

    def __init__(self, note: str, raw: bytes = b"") -> None:
        super().__init__(note)
        self.raw = raw


class BadSettings(ValueError):
    """A setting or secret that cannot work; the message names it and says what to write instead."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call to make: the frozen content, and the identity that travels with it."""

    key: str
    epoch: int
    attempt: int
    content: Content
    not_after: float = inf  # on the monotonic clock: later than this, nothing may be written any more


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What reviewers and operators are told of a provider."""

    own_key: bool  # takes an idempotency key of ours
    look_up: str  # "by key", "by message id" or "none"
    definite: str  # in words: which answers mean that nothing was created
    challenge: bool = False  # may create first, and complete when a one-shot challenge is answered


class Answer(StrEnum):
    """What a look-up found. Absent is no proof: logs lag, and a call may still be on its way. Refused is: they decided, and said no."""

    FOUND = "found"
    REFUSED = "refused"
    ABSENT = "absent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look-up's outcome: the answer, the receipt when found, and the raw bytes it rests on."""

    answer: Answer
    receipt: str = ""
    raw: bytes = b""


@dataclass(frozen=True)
class Setting:
    """One setting of a channel: how its text is read, what it is when unset, and what it is for."""

    read: Any  # str, int, float, or a function from text to a value; raises ValueError
    default: Any
    help: str


COMMON: dict[str, Setting] = {
    "timeout": Setting(float, 30.0, "seconds a call may take"),
    "settle_window": Setting(float, 600.0, "seconds after a lost call during which the provider is asked again and again"),
    "window": Setting(int, 32, "rows in flight per worker process: reserved and not yet settled; half of them in a call"),
    "max_attempts": Setting(int, 3, "attempts at one effect before a person is asked"),
    "rate": Setting(float, 0.0, "calls a second over all workers; 0 is no limit"),
    "target_kind": Setting(str, "auto", "how targets are resolved: email, opaque or auto"),
}


@dataclass
class Account:
    """A channel as its provider sees it: settings read and checked, secrets decrypted."""

    settings: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict)
    loopback: bool = False  # may reach this machine and private networks (DEBUG only)


class Provider(Protocol):
    """One way out. A new one is one file and one line in `effects.providers.register`."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    settings: ClassVar[dict[str, Setting]]

    preamble: float  # seconds a call may take before its first byte of content, over and above `timeout`

    def __init__(self, account: Account) -> None:
        """Raises BadSettings when the account's settings cannot work."""

    async def send(self, delivery: Delivery) -> Reply:
        """Make the call once. Raises NotSent or Lost; any answer, of whatever kind, is a Reply."""

    def read(self, reply: Reply) -> Verdict:
        """What an answer means. Pure: the same reply always gives the same verdict, on any machine, at any time."""

    def can_look_up(self) -> bool:
        """True when this account can be asked whether an effect exists."""

    async def look_up(self, key: str, epoch: int, reply: Reply | None = None) -> Sighting:
        """Ask the provider whether the effect exists; `reply` is what it answered to the call, where that was kept.

        Never sends; never raises for a provider's fault.
        """

    async def close(self) -> None:
        """Close kept-open connections."""


@runtime_checkable
class Challenger(Protocol):
    """A provider whose verdicts may bear a challenge: created, and completed when that is answered within so many seconds."""

    challenge_within: float

    async def answer(self, challenge: str, *, not_after: float) -> Reply:
        """Answer it once, and write nothing later than `not_after` on the monotonic clock. Raises NotSent or Lost, as `send` does."""

    def read_answer(self, reply: Reply, answer: Reply) -> Verdict:
        """What the reply to the answer means, beside the reply that held the challenge. Pure, as `read` is."""
