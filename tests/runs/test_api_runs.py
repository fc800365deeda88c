"""An agent tells what its run does: it starts, calls tools, ends."""

import pytest

from audit.models import Entry
from runs.models import Run
from tests.runs.agents import Agent, told
from tests.world import a_run, a_token, a_workspace

pytestmark = pytest.mark.django_db


def test_a_run_starts():
    answer = Agent().post("runs", {"agent": "mailer", "event_id": "spring-sale"})
    run = Run.objects.get()
    assert answer.status_code == 201
    assert answer.json() == {"id": run.pk, "state": "running"}
    assert (run.workspace.slug, run.token.name, run.tools) == ("acme", "mailer", None)
    entry = Entry.objects.get(act="run started")
    assert (entry.actor_kind, entry.object_id) == ("token", run.pk)


def test_one_planned_occurrence_is_one_run():
    words = {"agent": "mailer", "event_id": "daily", "occurrence": "2027-03-01T09:00:00Z"}
    first, second = Agent().post("runs", words), Agent().post("runs", words | {"occurrence": "2027-03-01T10:00:00+01:00"})
    assert (second.status_code, second.json()) == (201, first.json())
    assert Run.objects.count() == 1
    assert Entry.objects.filter(act="run started").count() == 1


def test_two_occurrences_are_two_runs_and_none_is_always_another():
    agent = Agent()
    agent.starts_a_run(occurrence="2027-03-01T09:00:00Z")
    agent.starts_a_run(occurrence="2027-03-02T09:00:00Z")
    agent.starts_a_run()
    agent.starts_a_run()
    assert Run.objects.count() == 4


def test_another_workspace_has_occurrences_of_its_own():
    Agent().starts_a_run(occurrence="2027-03-01T09:00:00Z")
    Agent(a_token(a_workspace("globex"))).starts_a_run(occurrence="2027-03-01T09:00:00Z")
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"event_id": "e"}, "agent"),
        ({"agent": "", "event_id": "e"}, "agent"),
        ({"agent": "a\0", "event_id": "e"}, "agent"),
        ({"agent": 5, "event_id": "e"}, "agent"),
        ({"agent": "a", "event_id": True}, "event_id"),
        ({"agent": "a", "event_id": "e", "occurrence": 1772355600}, "occurrence"),
        ({"agent": "a", "event_id": "e", "occurrence": "2027-03-01T09:00:00"}, "occurrence"),
        ({"agent": "a", "event_id": "e", "replay_of": "5"}, "replay_of"),
        ({"agent": "a", "event_id": "e", "replay_of": True}, "replay_of"),
        ({"agent": "a", "event_id": "e", "state": "finished"}, "state"),
    ],
)
def test_a_field_that_does_not_fit_is_named(body, field):
    answer = Agent().post("runs", body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"
    assert list(told(answer)) == [field]
    assert not Run.objects.exists()


@pytest.mark.parametrize("body", [b"{", b"\xff", b'"x"', b"[]", b"{}{}"])
def test_a_body_that_is_no_json_object_is_refused(body):
    answer = Agent().raw("runs", body, "application/json")
    assert answer.status_code in (400, 422)
    assert answer["Content-Type"] == "application/problem+json"


def test_a_body_too_large_is_refused_before_it_is_read():
    answer = Agent().post("runs", {"agent": "a", "event_id": "e" * 1_100_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_tool_calls_are_appended_and_kept():
    agent, run = Agent(), a_run()
    answer = agent.post(f"runs/{run.pk}/tool-calls", {"calls": [{"name": "search"}, {"name": "send_email"}]})
    assert (answer.status_code, answer.json()["tools"]) == (201, ["search", "send_email"])
    agent.post(f"runs/{run.pk}/tool-calls", {"calls": [{"name": "search", "arguments_digest": "sha256:1"}]})
    run.refresh_from_db()
    assert run.tools == ["search", "send_email", "search"]
    entry = Entry.objects.filter(act="tool calls recorded").latest("id")
    assert entry.after == {"calls": [{"name": "search", "arguments_digest": "sha256:1"}]}


def test_an_empty_list_says_that_no_tool_was_called():
    run = a_run()
    assert run.tools is None
    Agent().post(f"runs/{run.pk}/tool-calls", {"calls": []})
    run.refresh_from_db()
    assert run.tools == []


def test_a_run_that_ended_takes_no_more_tool_calls():
    agent, run = Agent(), a_run()
    agent.post(f"runs/{run.pk}/finish")
    answer = agent.post(f"runs/{run.pk}/tool-calls", {"calls": [{"name": "search"}]})
    assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "conflict", "finished")
    run.refresh_from_db()
    assert run.tools is None


@pytest.mark.parametrize(("act", "state"), [("finish", "finished"), ("fail", "failed")])
def test_a_run_ends_once(act, state):
    agent, run = Agent(), a_run()
    answer = agent.post(f"runs/{run.pk}/{act}", {"reason": "the model was away"})
    assert (answer.status_code, answer.json()) == (200, {"id": run.pk, "state": state})
    for again in ("finish", "fail"):
        assert agent.post(f"runs/{run.pk}/{again}").status_code == 409
    run.refresh_from_db()
    assert (run.state, run.reason) == (state, "the model was away")
    assert run.ended_at is not None
    assert Entry.objects.filter(object_kind="run", object_id=run.pk).values_list("act", "reason").get() == (
        f"run {state}", "the model was away",
    )  # fmt: skip


def a_past_run(tools: list[str] | None) -> Run:
    agent, run = Agent(), a_run()
    if tools is not None:
        agent.post(f"runs/{run.pk}/tool-calls", {"calls": [{"name": name} for name in tools]})
    agent.post(f"runs/{run.pk}/fail")
    return run


def test_a_run_that_called_no_tool_can_be_replayed():
    old = a_past_run([])
    new = Agent().starts_a_run(replay_of=old.pk)
    assert Run.objects.get(pk=new).replay_of == old


def test_a_run_that_called_tools_is_not_replayed_and_they_are_listed():
    answer = Agent().post("runs", {"agent": "a", "event_id": "e", "replay_of": a_past_run(["search", "pay", "search"]).pk})
    assert (answer.status_code, answer.json()["code"], answer.json()["tools"]) == (409, "tools_executed", ["search", "pay"])


def test_a_run_of_which_nobody_knows_is_not_replayed():
    answer = Agent().post("runs", {"agent": "a", "event_id": "e", "replay_of": a_past_run(None).pk})
    assert (answer.status_code, answer.json()["code"]) == (409, "tools_unknown")


def test_a_run_in_flight_is_not_replayed():
    answer = Agent().post("runs", {"agent": "a", "event_id": "e", "replay_of": a_run(tools=[]).pk})
    assert (answer.status_code, answer.json()["code"]) == (409, "in_flight")
