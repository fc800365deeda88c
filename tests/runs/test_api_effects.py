"""An agent reads the ledger of its own workspace."""

import pytest

from tests.runs.agents import Agent, told
from tests.world import a_proposed_plan, a_run, an_effect, rows_of

pytestmark = pytest.mark.django_db


def test_one_effect_is_shown_whole():
    run = a_run()
    plan = a_proposed_plan(rows=1, run_id=str(run.pk))
    effect = an_effect("done", row=rows_of(plan)[0], receipt="r-1", reason="accepted")
    shown = Agent().get(f"effects/{effect.pk}").json()
    assert shown.pop("reserved_at") <= shown.pop("settled_at")
    assert shown == {
        "id": effect.pk, "effect_id": effect.pk, "key": effect.key, "epoch": 0, "attempt": 1, "state": "done",
        "tool": "send_email", "target": "customer1@example.com", "run_id": run.pk, "receipt": "r-1", "reason": "accepted",
    }  # fmt: skip


def test_a_key_gives_every_attempt_newest_first():
    first, other = an_effect("failed"), an_effect("failed", target="bo@example.com")
    second = an_effect("unknown")
    agent = Agent()
    assert [one["id"] for one in agent.get("effects", key=first.key).json()["effects"]] == [second.pk, first.pk]
    assert [one["id"] for one in agent.get("effects").json()["effects"]] == [second.pk, other.pk, first.pk]
    assert agent.get("effects", key="v1:0").json() == {"effects": [], "next": None}


def test_a_run_gives_its_own():
    mine, other = an_effect("done", run_id="7"), an_effect("done", target="bo@example.com", run_id="77")
    assert [one["id"] for one in Agent().get("effects", run_id=7).json()["effects"]] == [mine.pk]
    assert other.run_id == "77"


def test_pages_follow_each_other_without_gap_or_repeat():
    made = [an_effect("done", target=f"c{n}@example.com").pk for n in range(5)]
    agent, found, cursor = Agent(), [], {}
    for _ in range(3):
        page = agent.get("effects", limit=2, **cursor).json()
        found += [one["id"] for one in page["effects"]]
        cursor = {"cursor": page["next"]}
    assert found == made[::-1]
    assert page["next"] is None


@pytest.mark.parametrize("query", [{"cursor": "x"}, {"run_id": "x"}, {"limit": 0}, {"key": "x" * 81}, {"key": "a\0"}])
def test_a_question_that_makes_no_sense_is_refused(query):
    answer = Agent().get("effects", **query)
    assert answer.status_code == 422
    assert list(told(answer)) == list(query)
