"""A key that is held, and a key that was freed: who may use it next (decision 11)."""

import pytest

from effects.models import Effect
from effects.rulings import resolve
from effects.states import State
from effects.workplace import Workplace
from tests import world
from tests.approvals.sends import approved, due_again, figures, work
from tests.approvals.test_coverage import agreed
from tests.fakes import FakeHttp, answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]


@pytest.mark.parametrize("again", [True, False])
def test_a_row_whose_key_is_unknown_elsewhere_waits_for_that_answer(workplace: Workplace, again: bool) -> None:
    with FakeHttp() as provider:
        plan = approved(provider, 2)
        held = world.an_effect("unknown")
        work(workplace, plan)
        assert figures(plan) == {"rows": 2, "waiting": 1, "done": 1}
        assert plan.chunks.get().due_at is not None, "it is looked at again"
        dana = world.acting(world.dana())
        resolve(held, to=State.FAILED, by=dana, reason="not there", evidence="asked", seen="unknown", again=again)
        due_again(plan)
        work(workplace, plan)
        assert provider.deliveries["customer1@example.com"] == int(again), "a ruling without `again` sends nothing"
    assert agreed(plan) == ({"done": 2} if again else {"done": 1, "waiting": 1})


def test_not_delivered_send_it_again_makes_one_more_attempt(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["customer1@example.com"] = answers(500)
        plan = approved(provider, 1)
        work(workplace, plan)
        effect = Effect.objects.get()
        due_again(plan)
        work(workplace, plan)
        assert provider.calls["customer1@example.com"] == 1, "no machine retries an unknown"
        provider.behaviours.clear()
        dana = world.acting(world.dana())
        resolve(effect, to=State.FAILED, by=dana, reason="not there", evidence="asked", seen="unknown", again=True)
        due_again(plan)
        work(workplace, plan)
        due_again(plan)
        work(workplace, plan)
        assert provider.calls["customer1@example.com"] == 2
    assert figures(plan) == {"rows": 1, "done": 1}


def test_a_person_may_say_no_without_sending_again(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["customer1@example.com"] = answers(500)
        plan = approved(provider, 1)
        work(workplace, plan)
        dana = world.acting(world.dana())
        resolve(Effect.objects.get(), to=State.FAILED, by=dana, reason="not there", evidence="asked", seen="unknown")
        due_again(plan)
        work(workplace, plan)
        assert provider.calls["customer1@example.com"] == 1
    assert figures(plan) == {"rows": 1, "failed": 1}


def test_a_revoked_effect_frees_its_key_for_plans_approved_afterwards_only(workplace: Workplace) -> None:
    from effects.rulings import revoke

    with FakeHttp() as provider:
        before = approved(provider, 1)
        held = world.an_effect("unknown")
        work(workplace, before)
        revoke(held, by=world.acting(world.dana()), reason="called off", seen="unknown")
        due_again(before)
        work(workplace, before)
        assert not provider.calls
        work(workplace, approved(provider, 1))
        assert provider.deliveries == {"customer1@example.com": 1}
    assert figures(before) == {"rows": 1, "covered": 1}


def test_our_own_failure_stays_ours_when_another_plan_fails_too(workplace: Workplace) -> None:
    with FakeHttp(otherwise=answers(400)) as provider:
        first = approved(provider, 1)
        work(workplace, first)
        second = approved(provider, 1)
        work(workplace, second)
    assert figures(first) == figures(second) == {"rows": 1, "failed": 1}
