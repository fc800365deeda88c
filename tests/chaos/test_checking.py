"""The checker is tested like anything else: a made-up history in which all is well, and one change for each violation."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checking import RULES, check
from tests.chaos.history import (
    Call,
    Channel,
    Effect,
    Entry,
    Epoch,
    Fault,
    History,
    Kept,
    LookUp,
    Move,
    OptOut,
    Pause,
    Plan,
    Row,
    Sample,
)
from tests.chaos.reading import leaks_in
from tests.chaos.safety import content_digest

WORKER, SWEEPER = "host:1:abc", "sweeper host:2:def"
NAMES = ("ada", "accepted-500", "400", "bo")
NOTHING = dict.fromkeys(("excluded", "waiting", "pending", "stranded", "revoked", "covered"), 0)
SHOWN = NOTHING | {"rows": 4, "done": 2, "failed": 1, "unknown": 1}


def target(name: str) -> str:
    return f"{name}@sandbox.example"


def content(name: str) -> dict[str, Any]:
    return {
        "to": target(name),
        "subject": "Hello",
        "text": f"marker: m-{name}",
        "html": "",
        "payload": None,
        "amount_minor": None,
    }


def a_row(name: str, position: int) -> Row:
    return Row(
        1, position, f"v1:{name}", 0, target(name), content_digest(content(name)), f"m-{name}", "Hello", f"marker: m-{name}"
    )


def an_effect(name: str, id: int, state: str, answer: bytes, **fields: Any) -> Effect:
    told = {"settled_at": 103.0, "settled_by": WORKER, "kept": Kept("answered", answer, 102.0)} | fields
    return Effect(id, 1, 1, f"v1:{name}", 0, 1, state, target(name), content_digest(content(name)), 1, WORKER, 100.5, **told)


def a_call(name: str, answer: bytes, *, receipt: str = "") -> Call:
    return Call(
        101.0,
        "http",
        "acme",
        target(name),
        f"m-{name}",
        bool(receipt),
        receipt,
        name,
        (f"v1:{name}:0",),
        1,
        content(name),
        answer,
    )


def all_is_well() -> History:
    """One plan of four rows: done, delivered but unknown, refused, and done by a look-up after its worker died."""
    answers = {name: f"HTTP/1.1 {name}".encode() for name in NAMES}
    return History(
        calls=[
            a_call("ada", answers["ada"], receipt="r-1"),
            a_call("accepted-500", answers["accepted-500"], receipt="r-2"),
            a_call("400", answers["400"]),
            a_call("bo", answers["bo"], receipt="r-4"),
        ],
        effects=[
            an_effect("ada", 1, "done", answers["ada"], receipt="r-1"),
            an_effect("accepted-500", 2, "unknown", answers["accepted-500"]),
            an_effect("400", 3, "failed", answers["400"]),
            an_effect("bo", 4, "done", b"", receipt="r-4", settled_by=SWEEPER, kept=None),
        ],
        moves=[Move(id, 103.0, "pending", after, WORKER) for id, after in ((1, "done"), (2, "unknown"), (3, "failed"))]
        + [Move(4, 120.0, "pending", "done", SWEEPER)],
        rows=[a_row(name, n) for n, name in enumerate(NAMES, 1)],
        plans=[Plan(1, 1, 1, "approved", "sha256:p", 100.0, "sha256:p", author=8, decided_by=7)],
        channels=[Channel(1, 1, "acme"), Channel(2, 2, "globex")],
        look_ups=[LookUp(4, 119.0, "found")],
        entries=[Entry("plan approved", "plan", 1, "human")],
        desk={1: 1, 2: 0},
        samples=[Sample(110.0, 0, {1: "done", 4: "pending"}, {1: SHOWN})],
    )


def changed(history: History, kind: str, index: int, **fields: Any) -> None:
    values = getattr(history, kind)
    values[index] = replace(values[index], **fields)


def kept(raw: bytes, at: float = 102.0) -> Kept:
    return Kept("answered", raw, at)


def again(history: History, **fields: Any) -> None:
    """A second attempt at the refused row, reserved at 130."""
    told = {"id": 9, "attempt": 2, "reserved_at": 130.0, "state": "pending", "settled_at": None, "kept": None} | fields
    history.effects.append(replace(history.effects[2], **told))


VIOLATIONS: dict[str, tuple[str, Callable[[History], Any]]] = {
    "delivered twice": ("I1", lambda h: h.calls.append(replace(h.calls[0], at=101.2, receipt="r-9"))),
    "done, never delivered": ("I2", lambda h: changed(h, "calls", 0, filed=False)),
    "done with a made-up receipt": ("I2", lambda h: changed(h, "effects", 0, receipt="r-7")),
    "failed, and delivered": ("I3", lambda h: changed(h, "calls", 2, filed=True, receipt="r-3")),
    "called after it was revoked": (
        "I4",
        lambda h: (
            changed(h, "effects", 1, state="revoked"),
            h.moves.append(Move(2, 110.0, "unknown", "revoked", "dana")),
            h.calls.append(replace(h.calls[1], at=111.0, filed=False)),
        ),
    ),
    "called after it was unknown": ("I5", lambda h: h.calls.append(replace(h.calls[1], at=111.0, filed=False))),
    "stranded, and completed": ("I6", lambda h: changed(h, "effects", 1, state="stranded")),
    "stranded, and created again": (
        "I6",
        lambda h: (changed(h, "effects", 2, state="stranded"), h.calls.append(replace(h.calls[2], at=101.5))),
    ),
    "delivered to nobody's row": ("I7", lambda h: h.calls.append(replace(h.calls[0], marker="m-x", target="x@y.example"))),
    "called before the approval": ("I7", lambda h: changed(h, "plans", 0, approved_at=101.5)),
    "called for a plan nobody approved": ("I7", lambda h: changed(h, "plans", 0, approved_at=None, state="rejected")),
    "an excluded row was called": ("I7", lambda h: changed(h, "rows", 0, excluded=True)),
    "another's letter": ("I7", lambda h: changed(h, "calls", 0, target=target("eve"))),
    "begun after the stop": ("I7", lambda h: changed(h, "plans", 0, stopped_at=99.9)),
    "begun after they opted out": ("I7", lambda h: h.opt_outs.append(OptOut(1, None, target("ada"), 99.9))),
    "begun after they opted out of its channel": ("I7", lambda h: h.opt_outs.append(OptOut(1, 1, target("ada"), 99.9))),
    "another text": ("I8", lambda h: changed(h, "calls", 0, content=content("ada") | {"text": "marker: m-ada!"})),
    "another digest in the ledger": ("I8", lambda h: changed(h, "effects", 0, digest="sha256:other")),
    "a decision on something else": ("I8", lambda h: changed(h, "plans", 0, decided_digest="sha256:q")),
    "called before the claim": ("I9", lambda h: changed(h, "effects", 0, reserved_at=101.5)),
    "called without a claim": ("I9", lambda h: h.effects.pop(2)),
    "called as an attempt nobody reserved": ("I9", lambda h: changed(h, "calls", 0, attempt=2)),
    "called as another effect": ("I9", lambda h: changed(h, "calls", 0, keys=("v1:bo:0",))),
    "settled before its reply was kept": ("I10", lambda h: changed(h, "effects", 0, kept=kept(b"HTTP/1.1 ada", 103.0))),
    "settled without a reply": ("I10", lambda h: changed(h, "effects", 2, kept=None)),
    "kept other bytes": ("I10", lambda h: changed(h, "effects", 0, kept=kept(b"HTTP/1.1 ada?"))),
    "an arrow that is none": ("I11", lambda h: changed(h, "moves", 2, after="revoked")),
    "a state without its arrow": ("I11", lambda h: changed(h, "effects", 1, state="done", receipt="r-2")),
    "a final row that changed": ("I11", lambda h: changed(h, "samples", 0, states={3: "done"})),
    "a row that is gone": ("I11", lambda h: changed(h, "samples", 0, states={77: "done"})),
    "attempts with a gap": ("I11", lambda h: changed(h, "effects", 2, attempt=2)),
    "an epoch nobody opened": ("I12", lambda h: changed(h, "effects", 0, epoch=1)),
    "an epoch opened too late": (
        "I12",
        lambda h: (changed(h, "effects", 0, epoch=1), h.epochs.append(Epoch("v1:ada", 1, 100.9, 7))),
    ),
    "reserved twice at once": ("I13", lambda h: again(h, reserved_at=102.0)),
    "two live claims at a sample": ("I13", lambda h: changed(h, "samples", 0, double=1)),
    "settled without a trail": ("I14", lambda h: h.moves.pop(2)),
    "a ruling that is not in the record": ("I14", lambda h: changed(h, "effects", 1, ruled=True)),
    "an approval that is not in the record": ("I14", lambda h: h.entries.clear()),
    "approved by its author": ("I15", lambda h: changed(h, "plans", 0, decided_by=8)),
    "another tenant's account": ("I16", lambda h: changed(h, "calls", 0, account="globex")),
    "another tenant's ledger": ("I16", lambda h: changed(h, "effects", 0, workspace=2)),
    "a rest that nobody asked for": ("I16", lambda h: h.pauses.append(Pause("channel:2", WORKER, 105.0))),
    "a row that was never tried": ("I17", lambda h: h.rows.append(replace(a_row("cy", 5), marker="m-cy"))),
    "still pending": ("I17", lambda h: again(h)),
    "a retry that never came": ("I17", lambda h: changed(h, "effects", 2, retry_at=104.0)),
    "the loser of a key was skipped": (
        "I17",
        lambda h: (
            h.plans.append(replace(h.plans[0], id=2)),
            h.entries.append(Entry("plan approved", "plan", 2, "human")),
            h.rows.append(replace(h.rows[2], plan=2, marker="m-again")),
        ),
    ),
    "an ordinary row that failed": (
        "I18",
        lambda h: (
            changed(h, "effects", 0, state="failed", receipt=""),
            changed(h, "moves", 0, after="failed"),
            changed(h, "calls", 0, filed=False),
        ),
    ),
    "a desk that forgot a row": ("I19", lambda h: h.desk.update({1: 0})),
    "figures that do not add up": ("I20", lambda h: changed(h, "samples", 0, shown={1: SHOWN | {"unknown": 0}})),
    "done that shrank": (
        "I20",
        lambda h: h.samples.append(Sample(111.0, 0, {}, {1: SHOWN | {"done": 1, "waiting": 1}})),
    ),
    "messages without end": ("I22", lambda h: changed(h, "samples", 0, queued=5000)),
    "a token in a log": ("I23", lambda h: h.leaks.append(("web.log", "the token of acme"))),
    "a neighbour that was held up": ("I21", lambda h: changed(h, "plans", 0, approved_at=90.0)),
}


def test_a_history_in_which_all_is_well_has_no_violation() -> None:
    assert check(all_is_well()) == []


@pytest.mark.parametrize("name", VIOLATIONS)
def test_each_violation_is_seen(name: str) -> None:
    invariant, happens = VIOLATIONS[name]
    history = all_is_well()
    happens(history)
    assert invariant in {violation.invariant for violation in check(history)}


def test_every_rule_has_a_violation_here() -> None:
    assert {rule.__name__.upper() for rule in RULES} == {invariant for invariant, _ in VIOLATIONS.values()}


def test_a_person_who_ruled_that_it_did_not_happen_excuses_a_second_delivery() -> None:
    history = all_is_well()
    changed(history, "effects", 1, state="failed", ruled=True)
    history.desk[1] = 0
    history.moves.append(Move(2, 110.0, "unknown", "failed", "dana"))
    history.entries.append(Entry("effect resolved as failed", "effect", 2, "human"))
    again(history, id=5, key="v1:accepted-500", target=target("accepted-500"), state="done", receipt="r-5", settled_at=132.0,
          digest=history.effects[1].digest, kept=kept(b"HTTP/1.1 accepted-500", 131.5), settled_by=WORKER)  # fmt: skip
    history.moves.append(Move(5, 132.0, "pending", "done", WORKER))
    history.calls.append(replace(history.calls[1], at=131.0, receipt="r-5", attempt=2))
    assert {violation.invariant for violation in check(history)} == {"I3"}, "the ledger still says what the person said"


def test_a_late_reply_of_a_worker_that_woke_is_no_violation() -> None:
    history = all_is_well()
    changed(history, "effects", 3, kept=kept(b"HTTP/1.1 bo", 125.0))
    assert check(history) == []


def test_a_killed_worker_may_leave_an_ordinary_row_unknown_but_only_where_something_was_killed() -> None:
    history = all_is_well()
    changed(history, "effects", 3, state="unknown", receipt="")
    history.desk[1] = 2
    changed(history, "moves", 3, after="unknown")
    history.look_ups.clear()
    assert {violation.invariant for violation in check(history)} == {"I18"}
    history.faults.append(Fault("kill worker", 100.6, 101.0))
    assert check(history) == []
    changed(history, "effects", 3, kept=Kept("not sent", b"", 125.0))
    assert check(history) == [], "the worker was only asleep, and found its claim too old"


def test_a_row_of_a_stopped_plan_need_not_come_to_an_end() -> None:
    history = all_is_well()
    changed(history, "plans", 0, state="stopped", stopped_at=150.0)
    history.rows.append(replace(a_row("cy", 5), marker="m-cy"))
    assert check(history) == []


@pytest.mark.parametrize(("channel", "workspace"), [(None, 1), (1, 1), (2, 1), (None, 2)])
def test_a_row_to_somebody_who_opted_out_here_is_never_tried(channel: int | None, workspace: int) -> None:
    history = all_is_well()
    history.rows.append(replace(a_row("cy", 5), marker="m-cy"))
    history.opt_outs.append(OptOut(workspace, channel, target("cy"), 100.2))
    here = channel in (None, 1) and workspace == 1
    assert {violation.invariant for violation in check(history)} == (set() if here else {"I17"})


def test_a_leak_is_found_in_the_log_that_holds_it(tmp_path: Path) -> None:
    (tmp_path / "web.log").write_bytes(b"\xff all is well\n")
    (tmp_path / "worker.log").write_text("sgn_secret\n")
    assert leaks_in(sorted(tmp_path.iterdir()), {"a token": "sgn_secret", "an address": "@"}) == [("worker.log", "a token")]
