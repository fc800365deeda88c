"""Who gets in, what they can see, and that a token decides nothing."""

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from accounts.models import Token
from approvals.models import Plan, Row
from audit.models import Entry
from effects.models import Effect
from runs.models import Run
from tests.runs.agents import Agent, letters
from tests.world import (
    a_channel,
    a_draft,
    a_proposed_plan,
    a_run,
    a_token,
    a_workspace,
    alice,
    an_effect,
    rows_of,
    secret_of,
    signed_in,
)

pytestmark = pytest.mark.django_db


def with_header(value: str) -> Client:
    return Client(headers={"Authorization": value})


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer nonsense", "Basic YTpi", "sgn_acme", "Bearer sgn_\x00"])
def test_without_a_valid_token_nothing_is_told(header):
    a_token()
    for answer in (with_header(header).get("/api/v1/effects"), with_header(header).post("/api/v1/runs")):
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer")
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "unauthorized"


def test_the_digest_of_a_token_is_no_token():
    assert with_header(f"Bearer {a_token().digest}").get("/api/v1/effects").status_code == 401


def test_a_revoked_or_expired_token_is_refused_at_once():
    agent = Agent()
    assert agent.get("effects").status_code == 200
    for change in ({"revoked_at": Now(), "expires_at": None}, {"revoked_at": None, "expires_at": Now() - timedelta(seconds=1)}):
        Token.objects.update(**change)
        assert agent.get("effects").status_code == 401
    Token.objects.update(revoked_at=None, expires_at=Now() + timedelta(hours=1))
    assert agent.get("effects").status_code == 200


def test_a_token_falls_with_the_person_who_answers_for_it():
    agent = Agent()
    owner = agent.token.owner
    owner.is_active = False
    owner.save()
    assert agent.get("effects").status_code == 401


def test_the_last_use_is_noted_once_a_minute():
    agent = Agent()
    agent.get("effects")
    first = Token.objects.get().last_used_at
    assert first is not None
    agent.get("effects")
    assert Token.objects.get().last_used_at == first
    Token.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    agent.get("effects")
    assert Token.objects.get().last_used_at >= first


def test_a_signed_in_person_is_no_agent():
    assert signed_in(alice()).get("/api/v1/effects").status_code == 401


# --- tenants -----------------------------------------------------------------------------------------


def test_every_id_of_another_workspace_is_not_found():
    run, plan = a_run(), a_proposed_plan()
    effect = an_effect("done", row=rows_of(plan)[0])
    draft = a_draft(rows=1)
    stranger = Agent(a_token(a_workspace("globex")))
    a_channel(a_workspace("globex"))
    own_run = a_run(stranger.token)
    words = {"title": "T", "tool": "send_email", "channel": "letters", "event_id": "e"}
    before = _everything()
    answers = {
        "run": stranger.post(f"runs/{run.pk}/finish"),
        "run fails": stranger.post(f"runs/{run.pk}/fail", {"reason": "x"}),
        "tools": stranger.post(f"runs/{run.pk}/tool-calls", {"calls": []}),
        "replay": stranger.post("runs", {"agent": "a", "event_id": "e", "replay_of": run.pk}),
        "run of plan": stranger.post("plans", words | {"run_id": run.pk}),
        "replaces": stranger.post("plans", words | {"run_id": own_run.pk, "replaces": plan.pk}),
        "rows in": stranger.raw(f"plans/{draft.pk}/rows", letters(1)),
        "submit": stranger.post(f"plans/{draft.pk}/submit"),
        "withdraw": stranger.post(f"plans/{plan.pk}/withdraw", {"reason": "x"}),
        "plan": stranger.get(f"plans/{plan.pk}"),
        "waiting": stranger.get(f"plans/{plan.pk}", wait=30),
        "rows out": stranger.get(f"plans/{plan.pk}/rows"),
        "effect": stranger.get(f"effects/{effect.pk}"),
    }
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 404)
    assert {answer.json()["code"] for answer in answers.values()} == {"not_found"}
    assert _everything() == before
    assert stranger.get("effects").json()["effects"] == []
    assert stranger.get("effects", key=effect.key).json()["effects"] == []
    assert stranger.get("effects", run_id=run.pk).json()["effects"] == []


def test_what_is_not_there_is_told_like_what_is_somebody_elses():
    plan, stranger = a_proposed_plan(), Agent(a_token(a_workspace("globex")))
    assert stranger.get(f"plans/{plan.pk}").json() == stranger.get(f"plans/{plan.pk + 999}").json()


def test_a_channel_of_another_workspace_is_no_channel():
    a_channel(slug="ours-only")
    stranger = Agent(a_token(a_workspace("globex")))
    words = stranger.plan_words(channel="ours-only")
    assert stranger.post("plans", words).json()["errors"][0]["field"] == "channel"


@pytest.mark.parametrize("id", ["0", "-1", str(2**63), str(10**30), "x", "1.0", "1%00"])
def test_an_id_that_is_none_is_no_fault_of_ours(id):
    agent = Agent()
    for path in (f"plans/{id}", f"plans/{id}/rows", f"effects/{id}"):
        assert agent.get(path).status_code in (404, 422)
    for path in (f"runs/{id}/finish", f"plans/{id}/submit"):
        assert agent.post(path).status_code in (404, 422)


def _everything() -> list:
    return [
        list(Plan.objects.order_by("pk").values()),
        list(Row.objects.order_by("pk").values()),
        list(Run.objects.order_by("pk").values()),
        list(Effect.objects.order_by("pk").values()),
        Entry.objects.count(),
    ]


# --- a token decides nothing --------------------------------------------------------------------------

# All that there is. Whoever adds a line here adds a power to every agent: it may propose, read and withdraw.
ROUTES = {
    ("post", "/api/v1/runs"),
    ("post", "/api/v1/runs/{id}/tool-calls"),
    ("post", "/api/v1/runs/{id}/finish"),
    ("post", "/api/v1/runs/{id}/fail"),
    ("post", "/api/v1/plans"),
    ("get", "/api/v1/plans/{id}"),
    ("post", "/api/v1/plans/{id}/rows"),
    ("get", "/api/v1/plans/{id}/rows"),
    ("post", "/api/v1/plans/{id}/submit"),
    ("post", "/api/v1/plans/{id}/withdraw"),
    ("get", "/api/v1/effects"),
    ("get", "/api/v1/effects/{id}"),
}
ACTS = ("approval", "approve", "rejection", "changes", "exclusion", "freeze", "pause", "resumption", "stop", "continue")
RULINGS = ("resolution", "revocation", "epoch", "resolve", "revoke", "bump")


def _paths() -> dict:
    return Client().get("/api/v1/openapi.json").json()["paths"]


def test_there_is_no_other_way_in_than_these():
    assert {(method, path) for path, methods in _paths().items() for method in methods} == ROUTES


def test_an_agent_can_decide_nothing():
    plan = a_proposed_plan()
    effect = an_effect("unknown", row=rows_of(plan)[0])
    agent, before = Agent(), _everything()
    body = {"digest": plan.digest, "reason": "I am sure", "to": "done", "state": "unknown", "epoch": 0, "positions": [1]}
    for path in [f"plans/{plan.pk}/{act}" for act in ACTS] + [f"effects/{effect.pk}/{act}" for act in RULINGS]:
        for slash in ("", "/"):
            assert agent.post(path + slash, body).status_code == 404
    for path in (f"plans/{plan.pk}", f"effects/{effect.pk}", f"plans/{plan.pk}/rows", "rules", "channels", "people"):
        for method in ("put", "patch", "delete"):
            assert agent.post(path, body, method=method).status_code in (404, 405)
    assert _everything() == before


def test_an_agents_token_opens_no_page_of_people():
    plan = a_proposed_plan()
    client = with_header(f"Bearer {secret_of(plan.token)}")
    answer = client.post(f"/acme/plans/{plan.pk}/approval/", {"digest": plan.digest})
    plan.refresh_from_db()
    assert answer.status_code in (302, 401, 403, 404)
    assert plan.state == "proposed"


# --- errors and documents ---------------------------------------------------------------------------


def test_a_wrong_method_and_an_unknown_address_are_problems_too():
    agent = Agent()
    wrong = agent.get("runs")
    assert (wrong.status_code, wrong["Allow"], wrong.json()["code"]) == (405, "POST", "method_not_allowed")
    assert agent.get("nowhere/at/all").json()["code"] == "not_found"


def test_what_breaks_on_our_side_is_told_without_particulars(monkeypatch, settings):
    settings.DEBUG = True
    monkeypatch.setattr("runs.api.effects.page_of", lambda *args, **kwargs: 1 / 0)
    answer = Agent().get("effects")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "division" not in answer.content.decode()


def test_the_documents_need_no_token_and_pass_the_policy_of_every_page():
    page = Client().get("/api/v1/docs")
    assert page.status_code == 200
    html = page.content.decode()
    assert "cdn" not in html
    assert "unsafe" not in page["Content-Security-Policy"]
    assert Client().get("/api/v1/openapi.json").json()["info"]["title"] == "Signoff"


def test_the_documents_say_that_unknown_fields_are_refused():
    schemas = Client().get("/api/v1/openapi.json").json()["components"]["schemas"]
    for name in ("NewRun", "NewPlan", "ToolCalls", "Ending", "Withdrawal"):
        assert schemas[name]["additionalProperties"] is False, name


def test_rows_are_documented_as_ndjson_and_csv():
    content = _paths()["/api/v1/plans/{id}/rows"]["post"]["requestBody"]["content"]
    assert set(content) == {"application/x-ndjson", "text/csv"}
    assert json.dumps(content)
