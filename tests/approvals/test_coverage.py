"""The closing sum: read from the ledger, in one statement, and the same as the rows say one by one."""

import unicodedata
from collections import Counter
from operator import attrgetter

import pytest
from django.db import connection

from approvals import queries, voting
from approvals.coverage import COUNTS, FIGURES, counts
from approvals.models import Plan
from effects import rulings
from effects.models import Effect
from tests import world

pytestmark = pytest.mark.django_db


def told_row_by_row(plan: Plan) -> dict[str, int]:
    """The sum that one gets by asking each row."""
    figures = Counter(map(attrgetter("figure"), queries.rows(plan, size=1000).rows))
    return {"rows": plan.row_count} | {name: figures[name] for name in ("excluded", *FIGURES)}


def agreed(plan: Plan) -> dict[str, int]:
    """The sum, in which both readings agree; what is zero is left out. Every figure is also found by its filter."""
    figures = counts(plan)
    assert figures == told_row_by_row(plan)
    assert figures["rows"] == figures["excluded"] + sum(figures[name] for name in FIGURES)
    for name in ("excluded", *FIGURES):
        assert len(queries.rows(plan, figure=name, size=1000).rows) == figures[name]
    return {name: count for name, count in figures.items() if count and name != "rows"}


def test_a_draft_waits() -> None:
    assert agreed(world.a_draft(3)) == {"waiting": 3}


def test_a_plan_without_rows_has_nothing_to_count() -> None:
    assert agreed(world.a_draft(0)) == {}


def test_every_state_of_our_own_effects_is_counted() -> None:
    plan = world.a_proposed_plan(8)
    for state, row in zip(("done", "failed", "unknown", "stranded", "revoked", "pending"), world.rows_of(plan), strict=False):
        world.an_effect(state, row=row)
    assert agreed(plan) == {"done": 1, "failed": 1, "unknown": 1, "stranded": 1, "revoked": 1, "pending": 1, "waiting": 2}


def test_the_newest_attempt_of_a_row_tells() -> None:
    plan = world.a_proposed_plan(3)
    one, two, _ = world.rows_of(plan)
    for state in ("failed", "revoked", "failed"):
        world.an_effect(state, row=one)
    for state in ("failed", "failed", "done"):
        world.an_effect(state, row=two)
    assert agreed(plan) == {"failed": 1, "done": 1, "waiting": 1}


def test_what_is_left_out_is_excluded_and_nothing_else() -> None:
    plan = world.a_proposed_plan(4)
    voting.exclude(plan, by=world.acting(world.alice()), positions=[2, 3], reason="They asked us to stop.")
    assert agreed(plan) == {"excluded": 2, "waiting": 2}


@pytest.mark.parametrize("ours_freed_it_before", [True, False])
@pytest.mark.parametrize(
    ("theirs", "figure"),
    [
        ("done", "covered"), ("pending", "waiting"), ("unknown", "waiting"), ("stranded", "waiting"), ("failed", "waiting"),
        ("revoked", "waiting"),
    ],
)  # fmt: skip
def test_an_effect_of_another_plan_covers_a_row_or_keeps_it_waiting(theirs: str, figure: str, ours_freed_it_before: bool) -> None:
    plan, other = world.a_proposed_plan(3), world.a_proposed_plan(3)
    if ours_freed_it_before:
        world.an_effect("failed", row=world.rows_of(plan)[0])
    world.an_effect(theirs, row=world.rows_of(other)[0])
    if ours_freed_it_before and theirs in ("failed", "revoked"):
        figure = "failed"
    assert agreed(plan) == ({"waiting": 3} if figure == "waiting" else {figure: 1, "waiting": 2})


def test_an_effect_that_no_plan_asked_for_covers_a_row_too() -> None:
    plan = world.a_proposed_plan(2)
    world.an_effect("done", target="customer1@example.com")
    assert agreed(plan) == {"covered": 1, "waiting": 1}


def test_an_event_in_another_spelling_is_the_same_event() -> None:
    event = "Grüße an José"
    plan = world.a_proposed_plan(2, event_id=unicodedata.normalize("NFC", event))
    other = world.a_proposed_plan(2, event_id=unicodedata.normalize("NFD", event))
    assert plan.event_id != other.event_id
    world.an_effect("done", row=world.rows_of(other)[1])
    assert agreed(plan) == {"covered": 1, "waiting": 1}


def test_another_event_covers_nothing() -> None:
    plan, other = world.a_proposed_plan(2), world.a_proposed_plan(2, event_id="another")
    world.an_effect("done", row=world.rows_of(other)[0])
    assert agreed(plan) == {"waiting": 2}


def test_a_row_of_the_next_epoch_is_not_covered_by_the_one_before() -> None:
    first = world.a_proposed_plan(2)
    done = world.an_effect("done", row=world.rows_of(first)[0])
    rulings.open_epoch(done, by=world.acting(world.dana()), reason="Wrong prices.", seen_epoch=0)
    plan = world.a_proposed_plan(2)
    assert agreed(plan) == {"waiting": 2}
    world.an_effect("done", row=world.rows_of(plan)[0])
    assert agreed(plan) == {"done": 1, "waiting": 1}
    assert agreed(first) == {"done": 1, "waiting": 1}


def test_an_excluded_row_is_not_covered() -> None:
    plan, other = world.a_proposed_plan(2), world.a_proposed_plan(2)
    voting.exclude(plan, by=world.acting(world.alice()), positions=[1], reason="They asked us to stop.")
    world.an_effect("done", row=world.rows_of(other)[0])
    assert agreed(plan) == {"excluded": 1, "waiting": 1}


def test_br_23_the_sum_is_counted_in_the_index_of_the_plans_own_effects() -> None:
    """A hundred thousand rows are not asked one by one, and the effects of others are not read."""
    plan = world.a_proposed_plan(2)
    world.an_effect("done", row=world.rows_of(plan)[0])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {COUNTS}", {"plan_id": plan.pk})
        steps = [line for (line,) in cursor.fetchall()]
    assert any("Index Only Scan using effects_of_one_plan" in step for step in steps), steps
    assert any("rows_that_are_left_out" in step for step in steps), steps
    assert not any("Seq Scan" in step for step in steps), steps
    assert Effect.objects.count() == 1
