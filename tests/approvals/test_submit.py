"""Submitting proposes a draft: the epochs are taken, the checks run, the digest is kept, and the text stays as it is."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.errors import LostRace, Refused
from approvals import plans
from approvals.freezing import digest_now
from approvals.models import Plan, PlanState, Row
from audit.models import Entry
from effects.models import Epoch
from tests.world import (
    a_channel,
    a_draft,
    a_proposed_plan,
    a_row,
    a_run,
    a_token,
    a_workspace,
    an_effect,
    approved,
    bob,
    dana,
    rows_of,
)

pytestmark = pytest.mark.django_db


def test_bob_answers_for_what_his_agent_proposes():
    run = a_run()
    plan = a_proposed_plan(run_id=str(run.pk))
    assert plan.state == PlanState.PROPOSED
    assert plan.author == bob()
    assert plan.run_id == str(run.pk)
    assert plan.version == 1


def test_the_digest_is_that_of_what_the_database_holds():
    plan = a_proposed_plan()
    assert plan.digest.startswith("sha256:")
    assert plan.digest == digest_now(plan)


def test_a_row_changed_behind_the_scenes_changes_the_digest_of_now():
    plan = a_proposed_plan()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE approvals_row DISABLE TRIGGER row_stays_as_proposed")
        cursor.execute("UPDATE approvals_row SET content_digest = 'sha256:x' WHERE plan_id = %s AND position = 2", [plan.pk])
    assert digest_now(plan) != plan.digest


def test_a_proposed_plan_waits_a_day_for_an_answer():
    plan = a_proposed_plan()
    assert abs(plan.expires_at - timezone.now() - timedelta(hours=24)) < timedelta(minutes=1)
    assert plan.proposed_at is not None


def test_a_plan_without_rows_is_refused():
    plan = a_draft()
    with pytest.raises(Refused, match="no rows"):
        plans.submit(plan, token=plan.token)
    plan.refresh_from_db()
    assert plan.state == PlanState.DRAFT


def test_a_plan_is_submitted_once():
    plan = a_proposed_plan()
    with pytest.raises(LostRace, match="proposed"):
        plans.submit(plan, token=plan.token)
    assert Entry.objects.filter(act="plan proposed").count() == 1


def test_somebody_elses_token_submits_nothing():
    plan = a_draft(rows=1)
    with pytest.raises(plans.NotYours):
        plans.submit(plan, token=a_token(name="other", owner=dana()))
    plan.refresh_from_db()
    assert plan.state == PlanState.DRAFT


def test_a_row_asks_for_the_highest_epoch_that_a_person_opened():
    plan = a_draft(rows=3)
    row = rows_of(plan)[1]
    for epoch in (1, 2):
        done = an_effect("done", row=row, epoch=epoch - 1)
        Epoch.objects.create(
            workspace=plan.workspace, key=row.key, epoch=epoch, supersedes=done, opened_by=dana(), reason="they asked"
        )
    plan = plans.submit(plan, token=plan.token)
    assert [row.epoch for row in rows_of(plan)] == [0, 2, 0]
    assert digest_now(plan) == plan.digest


def test_what_is_proposed_does_not_change():
    plan = a_proposed_plan()
    with pytest.raises(IntegrityError), transaction.atomic():
        Row.objects.filter(plan=plan, position=1).update(text="Something else.")
    with pytest.raises(IntegrityError), transaction.atomic():
        Plan.objects.filter(pk=plan.pk).update(title="Something else")


def test_proposing_stands_in_the_record_with_the_digest():
    plan = a_proposed_plan()
    entry = Entry.objects.get(act="plan proposed")
    assert (entry.object_id, entry.actor_kind, entry.digest) == (plan.pk, "token", plan.digest)
    assert entry.before == {"state": "draft"}
    assert entry.after == {"state": "proposed", "rows": 3}


# --- opening, and versions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"currency": "EURO"}, "currency"),
        ({"currency": "12A"}, "currency"),
        ({"title": "  "}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"tool": ""}, "tool"),
        ({"tool": "x" * 81}, "tool"),
        ({"event_id": " "}, "event_id"),
        ({"event_id": "a\tb"}, "event_id"),
        ({"scope": "a\0b"}, "scope"),
        ({"rationale": "a\0b"}, "rationale"),
    ],
)
def test_a_plan_is_not_opened_with(fields, word):
    with pytest.raises(Refused, match=word):
        a_draft(**fields)
    assert not Plan.objects.exists()


def test_a_plan_is_not_opened_on_a_channel_of_another_workspace():
    with pytest.raises(Refused, match="same workspace"):
        a_draft(channel=a_channel(a_workspace("globex")))


def test_a_new_version_takes_the_place_of_the_one_before_when_it_is_proposed():
    first = a_proposed_plan(rows=2)
    second = a_draft([a_row(1, text="Dear you, a better text.")], replaces=first)
    first.refresh_from_db()
    assert (second.version, first.state) == (2, PlanState.PROPOSED)
    plans.submit(second, token=second.token)
    first.refresh_from_db()
    assert first.state == PlanState.WITHDRAWN
    assert Entry.objects.get(act="plan withdrawn").reason == "Replaced by version 2."


def test_a_version_of_an_approved_plan_is_not_proposed():
    first = a_proposed_plan(rows=2)
    second = a_draft(rows=1, replaces=first)
    approved(first)
    with pytest.raises(LostRace, match="approved"):
        plans.submit(second, token=second.token)
    second.refresh_from_db()
    assert second.state == PlanState.DRAFT


def test_an_approved_plan_is_not_replaced():
    first = a_proposed_plan(rows=1)
    approved(first)
    with pytest.raises(LostRace, match="approved"):
        a_draft(replaces=first)


def test_a_draft_is_not_replaced():
    with pytest.raises(LostRace, match="draft"):
        a_draft(replaces=a_draft())


def test_a_plan_is_replaced_once():
    first = a_proposed_plan(rows=1)
    a_draft(replaces=first)
    with pytest.raises(LostRace, match="already"):
        a_draft(replaces=first)


def test_somebody_elses_plan_is_not_replaced():
    first = a_proposed_plan(rows=1)
    with pytest.raises(plans.NotYours):
        a_draft(replaces=first, token=a_token(name="other", owner=dana()))
