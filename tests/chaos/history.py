"""What happened, as plain values: the sandbox's journal on one side, the database on the other. Times are seconds since 1970."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call as the provider saw it. `keys` are what it was told of identities; only I9 looks at them."""

    at: float
    front: str
    account: str
    target: str
    marker: str = ""
    filed: bool = False
    receipt: str = ""
    name: str = ""
    keys: tuple[str, ...] = ()
    attempt: int | None = None
    content: dict[str, Any] | None = None
    answer: bytes = b""


@dataclass(frozen=True)
class Kept:
    """The raw reply that the ledger kept."""

    kind: str
    raw: bytes
    at: float


@dataclass(frozen=True)
class Effect:
    """One ledger row."""

    id: int
    workspace: int
    channel: int
    key: str
    epoch: int
    attempt: int
    state: str
    target: str
    digest: str
    plan: int | None
    worker: str
    reserved_at: float
    settled_at: float | None = None
    receipt: str = ""
    reason: str = ""
    settled_by: str = ""
    ruled: bool = False
    retry_at: float | None = None
    kept: Kept | None = None


@dataclass(frozen=True)
class Move:
    """One event of the trail."""

    effect: int
    at: float
    before: str
    after: str
    by: str


@dataclass(frozen=True)
class Row:
    """One row of a plan, frozen."""

    plan: int
    position: int
    key: str
    epoch: int
    target: str
    digest: str
    marker: str
    subject: str = ""
    text: str = ""
    html: str = ""
    excluded: bool = False


@dataclass(frozen=True)
class Plan:
    """One plan: when it was approved and stopped, if it was, and the digests on both sides of the decision."""

    id: int
    workspace: int
    channel: int
    state: str
    digest: str = ""
    approved_at: float | None = None
    decided_digest: str = ""
    stopped_at: float | None = None
    author: int | None = None
    decided_by: int | None = None


@dataclass(frozen=True)
class Channel:
    """One account at the provider."""

    id: int
    workspace: int
    account: str


@dataclass(frozen=True)
class Pause:
    """One pause and who began it."""

    subject: str
    started_by: str
    started_at: float


@dataclass(frozen=True)
class OptOut:
    """A target that wanted nothing more, through one channel or through any."""

    workspace: int
    channel: int | None
    target: str
    at: float


@dataclass(frozen=True)
class LookUp:
    """One question of the ledger's to the provider."""

    effect: int
    at: float
    answer: str


@dataclass(frozen=True)
class Callback:
    """What a provider told later, and what it came to."""

    effect: int
    kind: str
    outcome: str


@dataclass(frozen=True)
class Epoch:
    """One epoch that somebody opened."""

    key: str
    epoch: int
    opened_at: float
    opened_by: int | None


@dataclass(frozen=True)
class Entry:
    """One entry of the record."""

    act: str
    kind: str
    object: int | None
    actor: str


@dataclass(frozen=True)
class Sample:
    """One look during the run: keys with two live claims, states by effect, figures as shown by plan, and messages at the broker."""

    at: float
    double: int = 0
    states: dict[int, str] = field(default_factory=dict)
    shown: dict[int, dict[str, int]] = field(default_factory=dict)
    queued: int = 0


@dataclass(frozen=True)
class Fault:
    """One act of the nemesis: when it began, and when what it broke was whole again."""

    name: str
    at: float
    until: float


@dataclass
class History:
    """One run."""

    calls: list[Call] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    opt_outs: list[OptOut] = field(default_factory=list)
    look_ups: list[LookUp] = field(default_factory=list)
    callbacks: list[Callback] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    leaks: list[tuple[str, str]] = field(
        default_factory=list
    )  # in which log, and what kind of thing that nobody should find there
    desk: dict[int, int] = field(default_factory=dict)  # workspace: rows that its desk said to be unknown, at the end
