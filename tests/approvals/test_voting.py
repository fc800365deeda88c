"""Approve, reject, request changes: one decision, bound to what was on screen, never on one's own work."""

import threading

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.errors import LostRace, Refused
from approvals import tasks, voting
from approvals.models import Decision, Plan, Row
from audit.models import Entry
from tests import world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.look_at, "delay", lambda chunk_id: None)


def approve(plan: Plan, who: str = "alice", **fields: object) -> Decision:
    words = {"digest": plan.digest, "ticked": frozenset(check["code"] for check in plan.checks)} | fields
    return voting.approve(plan, by=world.acting(getattr(world, who)(), plan.workspace), **words)  # type: ignore[arg-type]


def state_of(plan: Plan) -> str:
    return Plan.objects.get(pk=plan.pk).state


def test_alice_approves_and_the_decision_names_the_digest_and_the_rule() -> None:
    plan = world.a_proposed_plan()
    decision = approve(plan, reason="looks right")
    assert (state_of(plan), decision.digest, decision.rule["approvers"]) == ("approved", plan.digest, 1)
    entry = Entry.objects.get(act="plan approved")
    assert (entry.actor_name, entry.digest, entry.reason) == ("Alice <alice@people.example>", plan.digest, "looks right")


def test_bob_cannot_approve_the_work_of_the_token_he_answers_for() -> None:
    """S13: through the verb, and in the database behind it."""
    plan = world.a_proposed_plan()
    with pytest.raises(Refused, match="somebody else has to approve"):
        approve(plan, "bob")
    with pytest.raises(IntegrityError, match="nobody approves their own work"), transaction.atomic():
        Decision.objects.create(plan=plan, kind="approved", by=world.bob(), digest=plan.digest)
    assert state_of(plan) == "proposed"


def test_no_role_is_exempt_from_four_eyes() -> None:
    plan = world.a_proposed_plan()
    world.bob().memberships.update(role="admin")
    with pytest.raises(Refused):
        approve(plan, "bob")


@pytest.mark.parametrize("who", ["dana", "ed"])
def test_it_refuses_who_does_not_decide(who: str) -> None:
    plan = world.a_proposed_plan()
    with pytest.raises(Refused, match="does not decide"):
        approve(plan, who)


def test_it_refuses_charlie() -> None:
    plan = world.a_proposed_plan()
    with pytest.raises(Refused):
        approve(plan, "charlie")
    with pytest.raises(Plan.DoesNotExist):
        voting.approve(plan, by=world.acting(world.charlie()), digest=plan.digest)


def test_br_17_another_digest_than_the_plans_is_refused() -> None:
    plan = world.a_proposed_plan()
    with pytest.raises(LostRace, match="not what was on your screen"):
        approve(plan, digest="sha256:" + "0" * 64)
    assert state_of(plan) == "proposed"


def test_br_17_rows_changed_behind_the_plan_stop_the_approval() -> None:
    """S23: the digest is taken again from the rows, under the lock."""
    plan = world.a_proposed_plan()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE approvals_row DISABLE TRIGGER row_stays_as_proposed")
        cursor.execute("UPDATE approvals_row SET content_digest = 'sha256:forged' WHERE plan_id = %s AND position = 2", [plan.pk])
        cursor.execute("ALTER TABLE approvals_row ENABLE TRIGGER row_stays_as_proposed")
    with pytest.raises(Refused, match="not what was proposed"):
        approve(plan)
    assert state_of(plan) == "proposed"


def test_a_blocking_check_stops_approval_and_says_why() -> None:
    plan = world.a_proposed_plan([world.a_row(1, text="Dear {{ name }}, your order has left our house.")])
    with pytest.raises(Refused, match="cannot be approved"):
        approve(plan)
    assert state_of(plan) == "proposed"


def test_a_warning_needs_a_tick() -> None:
    plan = world.a_proposed_plan([world.a_row(1, target="ada@example.com"), world.a_row(2, target="ada+x@example.com")])
    assert plan.checks
    with pytest.raises(Refused, match="Tick each warning"):
        approve(plan, ticked=frozenset())
    approve(plan)
    assert state_of(plan) == "approved"


def test_br_16_pressing_twice_makes_one_decision_and_says_who_was_first() -> None:
    plan = world.a_proposed_plan()
    approve(plan)
    with pytest.raises(LostRace, match="Alice decided"):
        approve(plan)
    assert Decision.objects.count() == 1


def test_fifty_at_once_make_one_decision() -> None:
    """S17."""
    plan = world.a_proposed_plan()
    human, ticked = world.acting(world.alice()), frozenset(check["code"] for check in plan.checks)
    ends: list[str] = []
    start = threading.Barrier(10)

    def press() -> None:
        start.wait()
        for _ in range(5):
            try:
                voting.approve(plan, by=human, digest=plan.digest, ticked=ticked)
                ends.append("approved")
            except LostRace:
                ends.append("late")
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["approved"] + ["late"] * 49
    assert Decision.objects.count() == 1
    assert plan.chunks.count() == 1


@pytest.mark.parametrize(("verb", "state"), [(voting.reject, "rejected"), (voting.request_changes, "changes_requested")])
def test_a_no_needs_a_reason_and_closes_the_plan(verb: object, state: str) -> None:
    plan, alice = world.a_proposed_plan(), world.acting(world.alice())
    with pytest.raises(Refused, match="Say "):
        verb(plan, by=alice, digest=plan.digest, reason="  ")  # type: ignore[operator]
    verb(plan, by=alice, digest=plan.digest, reason="the tone is off")  # type: ignore[operator]
    assert state_of(plan) == state
    assert not plan.chunks.exists()
    with pytest.raises(LostRace):
        approve(plan)


def test_excluding_rows_changes_the_digest_so_that_whoever_looked_before_looks_again() -> None:
    plan, alice = world.a_proposed_plan(4), world.acting(world.alice())
    shown = plan.digest
    assert voting.exclude(plan, by=alice, positions=[2], reason="asked us to stop") == 1
    with pytest.raises(LostRace, match="not what was on your screen"):
        approve(plan, digest=shown)
    plan.refresh_from_db()
    approve(plan)
    assert Row.objects.get(plan=plan, position=2).excluded_reason == "asked us to stop"
    assert Entry.objects.get(act="rows excluded").after["positions"] == [2]


@pytest.mark.parametrize("state", ["draft", "withdrawn"])
def test_only_a_proposed_plan_can_be_approved(state: str) -> None:
    from approvals import plans

    plan = world.a_draft(2)
    if state == "withdrawn":
        plans.withdraw(plan, reason="never mind", token=plan.token)
    with pytest.raises(LostRace):
        approve(plan, digest=plan.digest or "sha256:none")


@pytest.mark.parametrize(
    "change",
    ["UPDATE approvals_row SET text = 'other'", "DELETE FROM approvals_row", "UPDATE approvals_plan SET title = 'other'"],
)
def test_br_17_what_was_approved_never_changes(change: str) -> None:
    approve(world.a_proposed_plan())
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)


def test_a_decision_is_never_changed_or_removed() -> None:
    decision = approve(world.a_proposed_plan())
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        Decision.objects.filter(pk=decision.pk).update(reason="other")
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        decision.delete()


def test_the_record_is_never_changed() -> None:
    approve(world.a_proposed_plan())
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        Entry.objects.update(reason="other")
