"""An agent takes a plan back, for a reason, while nobody has decided on it."""

import pytest

from accounts.errors import LostRace, Refused
from approvals import plans
from approvals.models import Plan, PlanState
from audit.models import Entry
from tests.world import a_draft, a_proposed_plan, a_token, a_workspace, approved, charlie, dana

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("builder", [a_draft, a_proposed_plan])
def test_a_draft_and_a_proposed_plan_can_be_withdrawn(builder):
    plan = builder(rows=1)
    before = plan.state
    plans.withdraw(plan, reason="wrong list", token=plan.token)
    plan.refresh_from_db()
    assert plan.state == PlanState.WITHDRAWN
    entry = Entry.objects.get(act="plan withdrawn")
    assert (entry.reason, entry.before, entry.after) == ("wrong list", {"state": before}, {"state": "withdrawn"})


@pytest.mark.parametrize("state", [PlanState.APPROVED, PlanState.REJECTED, PlanState.CHANGES_REQUESTED, PlanState.EXPIRED])
def test_a_plan_that_was_decided_on_stays_as_decided(state):
    plan = a_proposed_plan()
    if state == PlanState.APPROVED:
        approved(plan)
    else:
        Plan.objects.filter(pk=plan.pk).update(state=state)
    with pytest.raises(LostRace, match=state.replace("_", " ")):
        plans.withdraw(plan, reason="wrong list", token=plan.token)
    plan.refresh_from_db()
    assert plan.state == state


def test_a_plan_is_withdrawn_once():
    plan = a_proposed_plan()
    plans.withdraw(plan, reason="wrong list", token=plan.token)
    with pytest.raises(LostRace):
        plans.withdraw(plan, reason="wrong list", token=plan.token)
    assert Entry.objects.filter(act="plan withdrawn").count() == 1


def test_it_takes_a_reason():
    plan = a_proposed_plan()
    with pytest.raises(Refused, match="reason"):
        plans.withdraw(plan, reason="  ", token=plan.token)


def test_it_refuses_charlie_and_dana():
    plan = a_proposed_plan()
    for token in (a_token(a_workspace("globex"), owner=charlie()), a_token(name="other", owner=dana())):
        with pytest.raises(plans.NotYours):
            plans.withdraw(plan, reason="mine now", token=token)
    plan.refresh_from_db()
    assert plan.state == PlanState.PROPOSED
