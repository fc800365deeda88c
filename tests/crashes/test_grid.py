"""Every place to die, and every way: one story for each, told with real processes against a provider that outlives them.

Six letters, a window of four, so two calls at a time. The worker meets its failpoint; afterwards a fresh worker and the sweeper go
on until nothing moves. The table says how many rows a person is asked about then; all others must be done. Where the provider can
be asked, a row that arrived is never left to a person. Whatever the table says, the promises of `invariants.py` must hold.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from approvals.models import Plan
from effects.models import Channel
from tests import world
from tests.crashes.hands import Hand
from tests.crashes.invariants import Facts, broken
from tests.crashes.story import Journal, an_approved_plan, chunks_of, facts_of
from tests.fakes import FakeHttp, FakeRelay, challenges

pytestmark = [pytest.mark.crashes, pytest.mark.django_db]  # the mark makes the database; the stories commit for good
ROWS = 6
AT_ONCE = 16  # stories told at once; most of their time is waiting for deadlines


def upto(n: int) -> range:
    return range(n + 1)


def exactly(n: int) -> range:
    return range(n, n + 1)


none, two = exactly(0), exactly(2)
SAME = range(0)  # not told: the other provider's story is the harder one, or the same

# failpoint -> rows left to a person: where the provider can be asked, where it cannot
HTTP: dict[str, tuple[range, range]] = {
    # The process is killed.
    "reserve:kill": (SAME, none),  # nothing was committed: the next worker sends all
    "reserved:kill": (two, two),  # pending and never called: nobody can tell that from a lost call
    "reserved:kill@2": (upto(3), upto(4)),
    "calling:kill": (two, two),
    "first-byte:kill": (two, two),
    "last-byte:kill": (upto(1), two),
    "answered:kill": (upto(1), two),
    "answered:kill@4": (upto(1), upto(4)),
    "keep:kill": (upto(2), upto(4)),
    "kept:kill": (upto(2), upto(3)),  # a kept reply is read again by the sweeper
    "kept:kill@3": (upto(2), upto(3)),
    "settle:kill": (upto(2), upto(3)),
    "settled:kill": (upto(2), upto(3)),
    "put-back:kill": (SAME, none),
    "put-back-done:kill": (SAME, none),
    # The process stands still until others have done its work, then goes on.
    "reserve:stop": (SAME, none),
    "reserved:stop": (two, two),
    "calling:stop": (two, two),
    "first-byte:stop": (two, two),
    "last-byte:stop": (upto(1), two),
    "answered:stop": (upto(1), two),
    "keep:stop": (upto(2), upto(4)),
    "keep:stop@2": (SAME, upto(4)),  # in the middle of a commit, with rows locked: that holds nobody up for long
    "kept:stop": (upto(2), upto(3)),
    "settle:stop": (upto(2), upto(3)),
    "settled:stop": (upto(2), upto(3)),
    "put-back:stop": (SAME, none),
    "put-back-done:stop": (SAME, none),
    # A fault of ours that nobody foresaw.
    "reserve:raise": (SAME, none),
    "reserved:raise": (SAME, two),
    "calling:raise": (exactly(1), exactly(1)),  # it spares the neighbours
    "first-byte:raise": (exactly(1), exactly(1)),
    "last-byte:raise": (none, exactly(1)),
    "answered:raise": (none, exactly(1)),
    "keep:raise": (upto(2), upto(4)),
    "kept:raise": (SAME, upto(3)),
    "settle:raise": (SAME, upto(3)),
    "settled:raise": (SAME, upto(3)),
    "put-back:raise": (SAME, none),
    # The database is lost: before a commit reached it, or after, so that the reply to COMMIT never comes.
    "reserve:cut": (SAME, none),
    "reserved:cut": (two, two),
    "keep:cut": (SAME, none),  # said again over another connection
    "kept:cut": (SAME, none),
    "kept:cut@2": (SAME, none),
    "settle:cut": (SAME, none),
    "settled:cut": (SAME, none),
    "put-back:cut": (SAME, none),
    "put-back-done:cut": (SAME, none),
}
# The same for a mail relay, which cannot be asked.
MAIL: dict[str, range] = {
    "first-byte:kill": two,
    "first-byte:stop": two,
    "last-byte:kill": two,
    "last-byte:stop": two,
    "answered:kill": two,
    "kept:kill": upto(3),
    "kept:cut": none,
    "settle:stop": upto(3),
}
# The same for a provider that creates first and completes when its challenge is answered; it cannot be asked.
CHALLENGED: dict[str, range] = {
    "kept:kill": upto(3),
    "challenged:kill": upto(4),
    "challenged:stop": upto(4),
    "challenged:raise": exactly(1),
    "challenge-answered:kill": upto(4),
    "challenge-answered:stop": upto(4),
    "challenge-kept:kill": upto(4),
    "challenge-kept:stop": upto(4),
    "": none,
}
# The worker dies at the first of these; then the sweeper meets the second.
SWEEPER: dict[str, tuple[range, range]] = {
    "reserved:kill then give-up:kill": (two, two),
    "reserved:kill then gave-up:kill": (SAME, two),
    "reserved:kill then give-up:stop": (SAME, two),
    "reserved:kill then give-up:cut": (SAME, two),
    "reserved:kill then gave-up:cut": (SAME, two),
    "answered:kill then prove:kill": (upto(1), SAME),
    "answered:kill then proved:kill": (upto(1), SAME),
    "answered:kill then prove:stop": (upto(1), SAME),
    "answered:kill then prove:cut": (upto(1), SAME),
    "answered:kill then proved:cut": (upto(1), SAME),
    "kept:kill then settle:kill": (SAME, upto(3)),
    "kept:kill then settled:kill": (SAME, upto(3)),
    "kept:kill then settle:stop": (SAME, upto(3)),
    "kept:kill then settled:cut": (SAME, upto(3)),
}
NEVER_LEFT = ("reserve", "reserved", "calling", "first-byte")  # a row that met its end here was not delivered


@dataclass(frozen=True)
class Cell:
    """One story: where it breaks, at which kind of provider, and how many rows a person is asked about."""

    breaks: str
    provider: str
    unknown: range

    @property
    def name(self) -> str:
        return f"{self.breaks}, {self.provider}"

    @property
    def parts(self) -> list[tuple[str, str, str]]:
        """Failpoint, point and action, of the worker and then of the sweeper."""
        failpoints = self.breaks.split(" then ")
        return [(text, text.split(":")[0], text.split(":")[1].split("@")[0]) for text in failpoints]


CELLS = [
    Cell(breaks, kind, unknown)
    for breaks, both in (HTTP | SWEEPER).items()
    for kind, unknown in zip(("asked", "silent"), both, strict=True)
    if unknown != SAME
]
CELLS += [Cell(breaks, "mail", unknown) for breaks, unknown in MAIL.items()]
CELLS += [Cell(breaks, "challenged", unknown) for breaks, unknown in CHALLENGED.items()]
CELLS += [Cell("", kind, none) for kind in ("asked", "silent", "mail")]  # nothing breaks at all


@dataclass
class Told:
    """How a story went: what the worker and the sweeper ended with, and all that is known afterwards."""

    ends: list[tuple[int | None, list[str] | None]]
    facts: Facts


@pytest.fixture(scope="module")
def told(committed: None, request: pytest.FixtureRequest) -> Iterator[dict[str, Told]]:
    """The stories of the cells that were asked for, told side by side in one database."""
    wanted = [
        item.callspec.params["cell"] for item in request.session.items if item.path == request.path and hasattr(item, "callspec")
    ]
    with FakeHttp() as http, FakeRelay() as relay, FakeHttp(otherwise=challenges()) as challenger:
        providers = {"asked": http, "silent": http, "mail": relay, "challenged": challenger}
        journals = {"asked": Journal(http), "mail": Journal(relay), "challenged": Journal(challenger)}
        journals["silent"] = journals["asked"]
        plans = {
            cell.name: an_approved_plan(_channel(cell, n, providers[cell.provider]), rows=ROWS, event=f"cell{n}")
            for n, cell in enumerate(wanted)
        }
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ends = dict(zip(plans, pool.map(_tell, wanted, plans.values(), map(chunks_of, plans.values())), strict=True))
        yield {name: Told(ends[name], facts_of(plan, journals[_kind(name)].of(plan))) for name, plan in plans.items()}
        for journal in journals.values():
            journal.close()


def _kind(name: str) -> str:
    return name.rpartition(", ")[2]


def _channel(cell: Cell, n: int, provider: FakeHttp | FakeRelay) -> Channel:
    settings = provider.settings | {"timeout": 1.5, "settle_window": 0.0, "window": 4}
    if cell.provider == "mail":
        return world.a_channel(provider="smtp", slug=f"cell{n}", settings=settings)
    return world.a_channel(slug=f"cell{n}", settings=settings | ({} if cell.provider == "asked" else {"lookup_url": ""}))


def _tell(cell: Cell, plan: Plan, chunks: list[int]) -> list[tuple[int | None, list[str] | None]]:
    """The worker meets its failpoint, then perhaps the sweeper; then all goes on until nothing moves."""
    ends = []
    for task, (failpoint, _, action) in zip(("work", "sweep"), cell.parts if cell.breaks else [], strict=False):
        hand = Hand(task, plan.pk, plan.channel_id, chunks, failpoints=failpoint)
        if action == "stop" and hand.stopped():
            Hand("recover", plan.pk, plan.channel_id, chunks).end()
            hand.wake()
        ends.append(hand.end())
    Hand("recover", plan.pk, plan.channel_id, chunks).end()
    return ends


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_whatever_breaks_every_approved_target_has_exactly_one_answer(told: dict[str, Told], cell: Cell) -> None:
    story = told[cell.name]
    for (_, point, action), (code, fired) in zip(cell.parts if cell.breaks else [], story.ends, strict=True):
        if action == "kill":
            assert (code != 0, fired) == (True, None), "it was killed, and had no last word"
        else:
            assert (code, fired) == (0, [point]), "the failpoint was met"
    assert broken(story.facts, calm=not cell.breaks) == []
    states = [row.state for row in story.facts.newest().values()]
    delivered = sum(post.accepted for post in story.facts.posts)
    assert states.count("unknown") in cell.unknown
    assert states.count("done") == ROWS - states.count("unknown")
    if cell.provider == "asked" or (cell.breaks.split(":")[0] in NEVER_LEFT and "@" not in cell.breaks):
        assert delivered == states.count("done")
