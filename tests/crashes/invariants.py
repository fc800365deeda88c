"""What must hold after any crash, whatever it was. Pure: facts in, broken promises out.

The numbers are those of the invariants of Signoff: what the provider counted is held against what the ledger says.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from effects.states import ARROWS, BLOCKING, FINAL, WAITS_FOR_A_PERSON, State

Identity = tuple[str, int]  # key and epoch


@dataclass(frozen=True)
class Attempt:
    """One row of the ledger, with the reply that was kept for it."""

    id: int
    key: str
    epoch: int
    attempt: int
    target: str
    state: str
    content_digest: str
    reserved_at: datetime
    settled_at: datetime | None = None
    receipt: str = ""
    reason: str = ""
    reply: bytes | None = None
    kept_at: datetime | None = None
    found: str = ""  # the receipt of a look-up that found it

    @property
    def identity(self) -> Identity:
        return self.key, self.epoch


@dataclass(frozen=True)
class Post:
    """One call as the provider saw it, written down before it answered."""

    target: str
    key: str
    epoch: int
    attempt: int
    at: datetime
    digest: str  # of the content that arrived
    accepted: bool = True
    receipt: str = ""
    answer: bytes = b""
    claimed: bool = True  # a committed, pending row was there to be seen, from outside


@dataclass(frozen=True)
class Step:
    """One arrow in the trail of one attempt."""

    attempt_id: int
    before: str
    after: str


@dataclass
class Facts:
    """All that is known of one approved plan once nothing moves any more."""

    approved: dict[Identity, str]  # to the digest that was approved
    decided_at: datetime
    attempts: list[Attempt] = field(default_factory=list)
    trail: list[Step] = field(default_factory=list)  # in order
    posts: list[Post] = field(default_factory=list)
    desk: dict[int, str] = field(default_factory=dict)  # attempt on a person's desk -> the reason given there
    counts: dict[str, int] = field(default_factory=dict)  # the closing sum as the plan's page shows it

    def newest(self) -> dict[Identity, Attempt]:
        """The last attempt at each key and epoch."""
        return {row.identity: row for row in sorted(self.attempts, key=lambda row: row.attempt)}


def broken(facts: Facts, *, calm: bool = False) -> list[str]:
    """One line for each promise that does not hold. `calm`: nothing was refused and nothing lost, so all must be done."""
    checks = (_deliveries, _states, _order, _trail, _attempts, _closing)
    found = [line for check in checks for line in check(facts)]
    if calm and any(row.state != State.DONE for row in facts.newest().values()):
        found.append("I18: nothing went wrong, and not everything is done")
    return found


def _deliveries(facts: Facts) -> Iterator[str]:
    for (target, epoch), count in Counter((post.target, post.epoch) for post in facts.posts if post.accepted).items():
        if count > 1:
            yield f"I1: {target} was delivered {count} times in epoch {epoch}"
    for post in facts.posts:
        if (post.key, post.epoch) not in facts.approved:
            yield f"I7: {post.target} was never approved"
        elif post.digest != facts.approved[post.key, post.epoch]:
            yield f"I8: {post.target} got other content than was approved"
        if post.at < facts.decided_at:
            yield f"I7: {post.target} was called before the approval"
        if not post.claimed:
            yield f"I9: {post.target} was called, and no claim was committed"


def _states(facts: Facts) -> Iterator[str]:
    accepted = [post for post in facts.posts if post.accepted]
    for row in facts.attempts:
        here = [post for post in accepted if (post.key, post.epoch, post.attempt) == (row.key, row.epoch, row.attempt)]
        if row.state == State.DONE and row.receipt not in [post.receipt for post in here]:
            yield f"I2: {row.target} is done, and the provider gave no such receipt"
        if row.state == State.FAILED and here:
            yield f"I3: {row.target} is failed, and was delivered"
        if row.state == State.STRANDED and [post.accepted for post in facts.posts if post.target == row.target] != [False]:
            yield f"I6: {row.target} is stranded, and was not created once and never completed"
        if row.state == State.UNKNOWN and facts.newest()[row.identity].attempt > row.attempt:
            yield f"I5: {row.target} is unknown, and was tried again"


def _order(facts: Facts) -> Iterator[str]:
    answers = defaultdict(set)
    for post in facts.posts:
        answers[post.target].add(post.answer)
    for row in facts.attempts:
        kept_first = row.kept_at is not None and row.settled_at is not None and row.kept_at < row.settled_at
        if row.state == State.DONE and not (kept_first or row.found == row.receipt):
            yield f"I10: {row.target} is done, and neither a reply kept before nor a look-up says so"
        if row.state == State.FAILED and not kept_first:
            yield f"I10: {row.target} is failed, and no reply was kept before"
        if row.state == State.DONE and row.reply and row.reply not in answers[row.target]:
            yield f"I10: the reply kept for {row.target} is not what the provider sent"


def _trail(facts: Facts) -> Iterator[str]:
    for row in facts.attempts:
        at = State.PENDING.value
        for step in (step for step in facts.trail if step.attempt_id == row.id):
            if step.before != at or (step.before, step.after) not in ARROWS.values():
                yield f"I11: {row.target} went from {step.before} to {step.after} when it was {at}"
            at = step.after
        if at != row.state:
            yield f"I14: {row.target} is {row.state}, and its trail ends at {at}"


def _attempts(facts: Facts) -> Iterator[str]:
    by_identity = defaultdict(list)
    for row in sorted(facts.attempts, key=lambda row: row.attempt):
        by_identity[row.identity].append(row)
    for rows in by_identity.values():
        if [row.attempt for row in rows] != list(range(1, len(rows) + 1)):
            yield f"I11: the attempts at {rows[0].target} are numbered {[row.attempt for row in rows]}"
        if sum(row.state in BLOCKING for row in rows) > 1:
            yield f"I13: more than one row holds the key of {rows[0].target}"
        for earlier, later in pairwise(rows):
            if earlier.settled_at is None or later.reserved_at < earlier.settled_at:
                yield f"I13: {later.target} was reserved again while its key was held"


def _closing(facts: Facts) -> Iterator[str]:
    newest = facts.newest()
    for identity in facts.approved.keys() - newest.keys():
        yield f"I17: {identity[0]} was approved, and has no row"
    states = Counter(row.state for identity, row in newest.items() if identity in facts.approved)
    if states[State.PENDING]:
        yield f"I17: {states[State.PENDING]} rows are still pending"
    figures = {name: facts.counts.get(name, 0) for name in (*FINAL, *WAITS_FOR_A_PERSON)}
    if figures != {name: states[name] for name in figures} or sum(figures.values()) != len(facts.approved):
        yield f"I17: the closing sum says {figures}, the ledger {dict(states)}"
    waiting = {row.id for row in facts.attempts if row.state in WAITS_FOR_A_PERSON}
    if waiting != facts.desk.keys():
        yield f"I19: {len(waiting)} rows wait for a person, and {len(facts.desk)} are on the desk"
    if not all(facts.desk.values()):
        yield "I19: a row on the desk gives no reason"
