"""An agent waits for what becomes of its plan: told at once when something moves, and in time when nothing does."""

import threading

import pytest

from approvals.models import Plan, PlanState
from runs.api import waiting
from tests.runs.agents import Agent
from tests.world import a_channel, a_draft, a_proposed_plan, an_effect, approved, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    a_channel()
    return Agent()


class Ticking:
    """A clock that moves when somebody sleeps, and does what is to happen at a moment."""

    def __init__(self, monkeypatch) -> None:
        self.now, self.naps, self.events = 0.0, [], {}
        monkeypatch.setattr(waiting.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(waiting.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        for moment in [moment for moment in self.events if moment <= self.now]:
            self.events.pop(moment)()


def test_waiting_ends_when_somebody_decides(agent, monkeypatch):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    clock.events[3.0] = lambda: approved(plan)
    assert agent.get(f"plans/{plan.pk}", wait=30).json()["state"] == "approved"
    assert 3.0 <= clock.now < 4.0


def test_waiting_ends_when_a_count_changes(agent, monkeypatch):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    clock.events[2.0] = lambda: an_effect("done", row=rows_of(plan)[0])
    assert agent.get(f"plans/{plan.pk}", wait=30).json()["counts"]["done"] == 1
    assert clock.now < 3.0


@pytest.mark.parametrize(("wait", "until"), [(5, 5), (30, 30), (3600, 30)])
def test_waiting_ends_in_time_when_nothing_happens(agent, monkeypatch, wait, until):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    assert agent.get(f"plans/{plan.pk}", wait=wait).json()["state"] == "proposed"
    assert clock.now == until
    assert min(clock.naps) >= 0.5


def test_a_change_since_what_was_seen_is_told_at_once(agent, monkeypatch):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    seen = agent.get(f"plans/{plan.pk}").json()["seen"]
    an_effect("done", row=rows_of(plan)[0])
    assert agent.get(f"plans/{plan.pk}", wait=30, seen=seen).json()["counts"]["done"] == 1
    assert agent.get(f"plans/{plan.pk}", wait=30, seen="draft").json()["state"] == "proposed"
    assert clock.naps == []


def test_a_state_can_be_what_was_seen(agent, monkeypatch):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    clock.events[3.0] = lambda: Plan.objects.filter(pk=plan.pk).update(state=PlanState.REJECTED)
    assert agent.get(f"plans/{plan.pk}", wait=30, seen="proposed").json()["state"] == "rejected"
    assert clock.now == 3.0


def test_without_wait_the_answer_comes_at_once(agent, monkeypatch):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    agent.get(f"plans/{plan.pk}")
    assert clock.naps == []


def test_when_many_wait_the_next_one_is_answered_at_once_and_places_come_back(agent, monkeypatch):
    clock, plan = Ticking(monkeypatch), a_proposed_plan()
    monkeypatch.setattr(waiting, "_places", threading.BoundedSemaphore(1))
    with waiting._places:
        agent.get(f"plans/{plan.pk}", wait=30)
        assert clock.naps == []
    agent.get(f"plans/{plan.pk}", wait=1)
    agent.get(f"plans/{plan.pk}", wait=1)
    assert clock.now == 2


def test_a_wait_of_less_than_nothing_is_refused(agent):
    assert agent.get(f"plans/{a_draft().pk}", wait=-1).status_code == 422
