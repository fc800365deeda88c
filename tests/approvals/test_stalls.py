"""Rows that are due and that nobody takes up are told on the pages; those that wait for a reason of their own are not."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import halting, queries
from approvals.models import Chunk, Plan
from effects import holding
from effects.models import Pause
from effects.workplace import Workplace
from tests import world
from tests.approvals.sends import approved, work
from tests.fakes import FakeHttp

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]


def due_since(plan: Plan, seconds: float) -> None:
    Chunk.objects.filter(plan=plan).update(due_at=timezone.now() - timedelta(seconds=seconds))


@pytest.fixture
def plan() -> Plan:
    """Approved, and due for a minute."""
    made = world.approved(world.a_proposed_plan(3, run_id=str(world.a_run().pk)))
    due_since(made, 60)
    return made


def test_what_is_due_and_lies_there_is_told_on_both_pages(plan: Plan) -> None:
    assert 59 < (timezone.now() - queries.stalled([plan])[plan.pk]).total_seconds() < 65
    alice = world.signed_in(world.alice())
    for page in (f"/acme/plans/{plan.pk}/", f"/acme/plans/{plan.pk}/progress/", f"/acme/runs/{plan.run_id}/"):
        assert "has taken this up since" in alice.get(page).content.decode()


def test_what_is_due_only_now_is_not(plan: Plan) -> None:
    due_since(plan, 1)
    assert queries.stalled([plan]) == {}


def test_what_somebody_has_is_not(plan: Plan) -> None:
    Chunk.objects.update(leased_by="somebody", leased_until=timezone.now() + timedelta(seconds=5))
    assert queries.stalled([plan]) == {}
    Chunk.objects.update(leased_until=timezone.now() - timedelta(seconds=5))
    assert list(queries.stalled([plan])) == [plan.pk], "they are gone"


def test_between_two_turns_of_a_busy_worker_it_is_not(plan: Plan) -> None:
    world.an_effect("done", row=world.rows_of(plan)[0])
    assert queries.stalled([plan]) == {}


def test_what_is_paused_or_stopped_waits_for_a_person(plan: Plan) -> None:
    alice = world.acting(world.alice())
    halting.pause(plan, by=alice, reason="Wait.")
    assert queries.stalled([plan]) == {}
    halting.resume(plan, by=alice)
    Pause.objects.update(lifted_at=timezone.now() - timedelta(seconds=30))
    due_since(plan, 60)
    assert list(queries.stalled([plan])) == [plan.pk]
    halting.stop(plan, by=alice, reason="No more.")
    assert queries.stalled([plan]) == {}


def test_what_was_paused_until_now_has_not_waited_for_anybody(plan: Plan) -> None:
    dana = world.acting(world.dana())
    holding.pause_channel(plan.channel, by=dana, reason="Wait.")
    holding.resume_channel(plan.channel, by=dana, reason="Go on.")
    assert queries.stalled([plan]) == {}


def test_what_went_out_is_not(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        plan = approved(provider, 2)
        work(workplace, plan)
    assert queries.stalled([plan]) == {}
