"""A POST that comes again with its Idempotency-Key gets the first answer and does nothing."""

import threading

import pytest
from django.db import close_old_connections, connection

from approvals.models import Plan, Row
from audit.models import Entry
from runs.models import Answer, Run
from tests.runs.agents import Agent, letters
from tests.world import a_channel, a_draft, a_run, a_token, a_workspace

pytestmark = pytest.mark.django_db

WORDS = {"agent": "mailer", "event_id": "spring-sale"}


def test_br_14_the_same_body_gets_the_first_answer_again():
    agent = Agent()
    first, second = (agent.post("runs", WORDS, key='"k-1"') for _ in range(2))
    assert (second.status_code, second.json()) == (201, first.json())
    assert Run.objects.count() == 1
    assert Entry.objects.count() == 1


def test_without_a_key_or_with_another_one_it_is_another_act():
    agent = Agent()
    for key in (None, None, '"k-1"', '"k-2"'):
        agent.post("runs", WORDS, key=key)
    assert Run.objects.count() == 4


def test_br_14_another_body_is_refused_and_does_nothing():
    agent = Agent()
    agent.post("runs", WORDS, key='"k-1"')
    answer = agent.post("runs", WORDS | {"agent": "other"}, key='"k-1"')
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert Run.objects.count() == 1


def test_br_14_a_key_counts_for_one_address_and_one_token():
    agent, one, other = Agent(), a_run(), a_run()
    assert agent.post(f"runs/{one.pk}/finish", key='"k-1"').status_code == 200
    assert agent.post(f"runs/{other.pk}/finish", key='"k-1"').json()["id"] == other.pk
    assert agent.post("runs", WORDS, key='"k-1"').status_code == 201
    assert Agent(a_token(name="second")).post("runs", WORDS | {"agent": "b"}, key='"k-1"').status_code == 201
    assert Agent(a_token(a_workspace("globex"))).post("runs", WORDS | {"agent": "c"}, key='"k-1"').status_code == 201


@pytest.mark.parametrize(
    "key", ["", '""', '"', '"a', 'a"', '"a" "b"', "a b", '"é"', '"a\tb"', '"' + "x" * 256 + '"', "x" * 256, 'a,"b"', '"a\\b"']
)
def test_a_key_that_cannot_be_read_is_refused_and_does_nothing(key):
    answer = Agent().post("runs", WORDS, key=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency_key_malformed")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "key", ['"8e03978e-40d5-43dd-bc93-6894a57f9324"', "8e03978e-40d5-43dd-bc93-6894a57f9324", '"' + "x" * 255 + '"', r'"a\"b"']
)
def test_a_key_may_be_in_quotes_or_bare(key):
    assert Agent().post("runs", WORDS, key=key).status_code == 201


def test_quotes_make_no_other_key():
    agent = Agent()
    assert agent.post("runs", WORDS, key='"k-1"').json() == agent.post("runs", WORDS, key="k-1").json()


def test_a_refusal_of_the_act_is_an_answer_too():
    agent, plan = Agent(), a_draft()
    first = agent.post(f"plans/{plan.pk}/submit", key='"k-1"')
    agent.raw(f"plans/{plan.pk}/rows", letters(1))
    second = agent.post(f"plans/{plan.pk}/submit", key='"k-1"')
    assert first.status_code == second.status_code == 422
    assert (second.json(), second["Content-Type"]) == (first.json(), "application/problem+json")
    assert agent.post(f"plans/{plan.pk}/submit", key='"k-2"').status_code == 200


def test_a_body_that_does_not_fit_is_not_kept_so_that_it_can_be_mended():
    agent = Agent()
    assert agent.post("runs", {"agent": "mailer"}, key='"k-1"').status_code == 422
    assert agent.post("runs", WORDS, key='"k-1"').status_code == 201


def test_a_fault_of_ours_leaves_neither_the_act_nor_an_answer(monkeypatch):
    agent = Agent()
    with monkeypatch.context() as broken:
        broken.setattr("runs.api.runs._shown", lambda run: 1 / 0)
        assert agent.post("runs", WORDS, key='"k-1"').status_code == 500
    assert not Run.objects.exists()
    assert not Answer.objects.exists()
    assert agent.post("runs", WORDS, key='"k-1"').status_code == 201


def test_rows_that_stream_in_are_loaded_once_and_compared_by_every_byte(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    agent, plan = Agent(), a_draft()
    first, second = (agent.raw(f"plans/{plan.pk}/rows", letters(300), key='"k-1"') for _ in range(2))
    assert (second.status_code, second.json()) == (200, first.json()) == (200, {"rows": 300, "total": 300})
    assert Row.objects.count() == 300
    other = agent.raw(f"plans/{plan.pk}/rows", letters(300) + b"\n", key='"k-1"')
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert Row.objects.count() == 300


def test_rows_refused_are_refused_again_with_the_same_errors():
    agent, plan = Agent(), a_draft()
    first, second = (agent.raw(f"plans/{plan.pk}/rows", b'{"a": 1}', key='"k-1"') for _ in range(2))
    assert first.status_code == second.status_code == 422
    assert first.json() == second.json()


@pytest.mark.django_db(transaction=True)
def test_br_14_of_two_at_once_one_acts_and_the_other_is_told_to_wait(monkeypatch):
    a_channel()
    agent = Agent()
    words = agent.plan_words()
    inside, go_on, statuses = threading.Event(), threading.Event(), []
    from runs.api import plans as door

    real = door.plans.open_plan

    def slow(*args, **kwargs):
        inside.set()
        assert go_on.wait(20)
        return real(*args, **kwargs)

    monkeypatch.setattr(door.plans, "open_plan", slow)

    def first():
        statuses.append(agent.post("plans", words, key='"k-1"').status_code)
        connection.close()

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert inside.wait(20)
        close_old_connections()
        second = Agent(agent.token).post("plans", words, key='"k-1"')
        assert (second.status_code, second.json()["code"]) == (409, "idempotency_key_running")
    finally:
        go_on.set()
        thread.join(20)
    assert statuses == [201]
    again = agent.post("plans", words, key='"k-1"')
    assert (again.status_code, again.json()["id"]) == (201, Plan.objects.get().pk)
