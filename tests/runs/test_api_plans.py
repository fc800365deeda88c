"""An agent proposes over the API and watches what becomes of it."""

from io import BytesIO

import pytest

from approvals.models import Decision, Plan, Row
from runs.api import bodies
from tests.runs.agents import Agent, letters, told
from tests.world import a_channel, a_draft, a_proposed_plan, a_run, a_token, alice, an_effect, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    a_channel()
    return Agent()


def test_an_agent_opens_a_plan(agent):
    run = a_run()
    answer = agent.post("plans", agent.plan_words(run_id=run.pk, currency="eur", scope="north", rationale="It is spring."))
    plan = Plan.objects.get()
    assert (answer.status_code, answer.json()) == (201, {"id": plan.pk, "state": "draft", "version": 1})
    assert (plan.run_id, plan.currency, plan.scope, plan.rationale) == (str(run.pk), "EUR", "north", "It is spring.")
    assert (plan.workspace.slug, plan.author.name, plan.channel.slug) == ("acme", "Bob", "letters")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": 5}, "title"),
        ({"tool": "x" * 81}, "tool"),
        ({"run_id": "1"}, "run_id"),
        ({"run_id": True}, "run_id"),
        ({"run_id": 1.0}, "run_id"),
        ({"currency": "EURO"}, "currency"),
        ({"channel": "nowhere"}, "channel"),
        ({"rationale": "a\0b"}, "rationale"),
        ({"approved": True}, "approved"),
        ({"author": "alice@people.example"}, "author"),
        ({"epoch": 1}, "epoch"),
        ({"state": "approved"}, "state"),
    ],
)
def test_a_field_that_does_not_fit_is_named(agent, change, field):
    answer = agent.post("plans", agent.plan_words(**change))
    assert answer.status_code == 422
    assert list(told(answer)) == [field]
    assert not Plan.objects.exists()


def test_what_no_key_can_hold_is_refused_in_words(agent):
    answer = agent.post("plans", agent.plan_words(event_id="a\tb"))
    assert (answer.status_code, answer.json()["code"]) == (422, "refused")
    assert "event_id" in answer.json()["detail"]


def test_an_agent_loads_ndjson_and_csv(agent):
    plan = agent.opens_a_plan(currency="EUR")
    answer = agent.raw(f"plans/{plan.pk}/rows", letters(3))
    assert (answer.status_code, answer.json()) == (200, {"rows": 3, "total": 3})
    csv = b'target,text,amount_minor\nana@example.com,"Dear Ana,\nhello.",1999\n'
    answer = agent.raw(f"plans/{plan.pk}/rows", csv, "text/csv; charset=utf-8")
    assert (answer.status_code, answer.json()) == (200, {"rows": 1, "total": 4})
    assert rows_of(plan)[3].text == "Dear Ana,\nhello."


def test_rows_that_do_not_fit_are_told_by_line_and_none_is_kept(agent):
    plan = agent.opens_a_plan()
    answer = agent.raw(f"plans/{plan.pk}/rows", letters(2) + b'\n{"target": "ana@example.com", "amount_minor": 19.99}')
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["code"] == "rows_refused"
    assert answer.json()["count"] == 1
    assert [(error["line"], error["field"]) for error in answer.json()["errors"]] == [(3, "amount_minor")]
    assert not Row.objects.exists()


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "", "text/csv; charset=latin-1", "multipart/form-data"]
)
def test_rows_of_another_kind_are_refused(agent, content_type):
    plan = agent.opens_a_plan()
    answer = agent.raw(f"plans/{plan.pk}/rows", letters(1), content_type)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_rows_are_read_in_pieces_whatever_the_limit_of_a_form(agent, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    plan = agent.opens_a_plan()
    assert agent.raw(f"plans/{plan.pk}/rows", letters(500)).json()["rows"] == 500


def test_a_chunked_request_is_read_to_its_end(agent):
    plan = agent.opens_a_plan()
    wire = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": BytesIO(letters(7))}
    wire |= {"CONTENT_TYPE": "application/x-ndjson", "CONTENT_LENGTH": ""}
    answer = agent.client.post(f"/api/v1/plans/{plan.pk}/rows", **wire)
    assert answer.json() == {"rows": 7, "total": 7}


def test_a_chunked_request_that_cannot_be_read_is_not_taken_for_an_empty_one(agent):
    plan = agent.opens_a_plan()
    answer = agent.client.post(f"/api/v1/plans/{plan.pk}/rows", CONTENT_TYPE="text/csv", headers={"Transfer-Encoding": "chunked"})
    assert (answer.status_code, answer.json()["code"]) == (411, "length_required")


def test_a_load_may_be_as_large_as_the_limit_and_no_larger(agent, monkeypatch):
    plan, data = agent.opens_a_plan(), letters(3)
    monkeypatch.setattr(bodies, "LARGEST", len(data) - 1)
    told_length = agent.raw(f"plans/{plan.pk}/rows", data)
    wire = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": BytesIO(data)}
    chunked = agent.client.post(f"/api/v1/plans/{plan.pk}/rows", **wire, CONTENT_TYPE="application/x-ndjson", CONTENT_LENGTH="")
    for answer in (told_length, chunked):
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert not Row.objects.exists()
    monkeypatch.setattr(bodies, "LARGEST", len(data))
    assert agent.raw(f"plans/{plan.pk}/rows", data).status_code == 200


@pytest.mark.parametrize("why", ["another kind", "no draft", "no such plan"])
def test_a_load_that_is_refused_is_read_to_its_end_so_that_the_agent_hears_why(agent, why):
    plan = a_proposed_plan() if why == "no draft" else agent.opens_a_plan()
    path = f"plans/{plan.pk + (99 if why == 'no such plan' else 0)}/rows"
    data = BytesIO(letters(2000))
    wire = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": data, "CONTENT_LENGTH": ""}
    kind = "text/plain" if why == "another kind" else "application/x-ndjson"
    assert agent.client.post(f"/api/v1/{path}", **wire, CONTENT_TYPE=kind).status_code >= 400
    assert data.read() == b""


def test_an_agent_submits(agent):
    plan = agent.opens_a_plan()
    agent.raw(f"plans/{plan.pk}/rows", letters(2) + b'\n{"target": "ana@example.com", "text": "Dear [NAME], hello."}')
    answer = agent.post(f"plans/{plan.pk}/submit")
    plan.refresh_from_db()
    assert answer.status_code == 200
    assert answer.json() == {"id": plan.pk, "state": "proposed", "digest": plan.digest, "checks": plan.checks}
    (check,) = answer.json()["checks"]
    assert (check["code"], check["blocking"], check["positions"]) == ("unresolved_placeholder", True, [3])


def test_an_empty_plan_is_not_submitted(agent):
    answer = agent.post(f"plans/{agent.opens_a_plan().pk}/submit")
    assert (answer.status_code, answer.json()["code"]) == (422, "refused")


def test_a_proposed_plan_takes_neither_rows_nor_another_submission(agent):
    plan = a_proposed_plan()
    for answer in (agent.raw(f"plans/{plan.pk}/rows", letters(1)), agent.post(f"plans/{plan.pk}/submit")):
        assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "conflict", "proposed")


def test_an_agent_withdraws_with_a_reason(agent):
    plan = a_proposed_plan()
    assert list(told(agent.post(f"plans/{plan.pk}/withdraw", {}))) == ["reason"]
    assert agent.post(f"plans/{plan.pk}/withdraw", {"reason": " "}).status_code == 422
    answer = agent.post(f"plans/{plan.pk}/withdraw", {"reason": "wrong list"})
    assert (answer.status_code, answer.json()["state"]) == (200, "withdrawn")
    assert agent.post(f"plans/{plan.pk}/withdraw", {"reason": "wrong list"}).status_code == 409


def test_a_next_version_replaces_the_plan(agent):
    first = a_proposed_plan()
    second = agent.opens_a_plan(replaces=first.pk)
    assert (second.version, second.replaces) == (2, first)
    assert agent.post("plans", agent.plan_words(replaces=first.pk)).status_code == 409


def test_a_token_of_somebody_else_reads_and_changes_nothing(agent):
    plan = a_draft(rows=1)
    other = Agent(a_token(name="other", owner=alice()))
    assert other.get(f"plans/{plan.pk}").status_code == 200
    for answer in (
        other.raw(f"plans/{plan.pk}/rows", letters(1)),
        other.post(f"plans/{plan.pk}/submit"),
        other.post(f"plans/{plan.pk}/withdraw", {"reason": "mine now"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_a_plan_is_shown_with_its_sum(agent):
    plan = a_proposed_plan(rows=5)
    answer = agent.get(f"plans/{plan.pk}").json()
    counts = {"rows": 5, "excluded": 0, "waiting": 5, "pending": 0, "done": 0, "failed": 0, "unknown": 0}
    counts |= {"stranded": 0, "revoked": 0, "covered": 0}
    seen = answer.pop("seen")
    assert answer == {
        "id": plan.pk, "state": "proposed", "digest": plan.digest, "version": 1, "counts": counts, "decision": None,
    }  # fmt: skip
    an_effect("done", row=rows_of(plan)[0])
    later = agent.get(f"plans/{plan.pk}").json()
    assert later["counts"] == counts | {"waiting": 4, "done": 1}
    assert later["seen"] != seen


def test_an_agent_is_told_what_should_change(agent):
    plan = a_proposed_plan()
    Decision.objects.create(plan=plan, kind="changes_requested", by=alice(), digest=plan.digest, reason="Say which order it is.")
    decision = agent.get(f"plans/{plan.pk}").json()["decision"]
    assert (decision["kind"], decision["reason"]) == ("changes_requested", "Say which order it is.")


def test_rows_come_page_by_page_with_what_became_of_each(agent):
    plan = a_proposed_plan(rows=5)
    rows = rows_of(plan)
    an_effect("failed", row=rows[1], reason="no such mailbox")
    done = an_effect("done", row=rows[1], receipt="r-77")
    Row.objects.filter(pk=rows[2].pk).update(excluded_reason="has opted out")
    first = agent.get(f"plans/{plan.pk}/rows", limit=3).json()
    assert first["rows"][1] == {
        "position": 2, "target": "customer2@example.com", "key": rows[1].key, "epoch": 0, "attempt": 2,
        "state": "done", "receipt": "r-77", "reason": "done, as the test tells", "effect_id": done.pk,
    }  # fmt: skip
    assert first["rows"][0] == {
        "position": 1, "target": "customer1@example.com", "key": rows[0].key, "epoch": 0, "attempt": None,
        "state": "waiting", "receipt": "", "reason": "", "effect_id": None,
    }  # fmt: skip
    assert (first["rows"][2]["state"], first["rows"][2]["reason"]) == ("excluded", "has opted out")
    second = agent.get(f"plans/{plan.pk}/rows", limit=3, cursor=first["next"]).json()
    assert [row["position"] for row in second["rows"]] == [4, 5]
    assert second["next"] is None


def test_a_row_done_by_an_earlier_plan_is_covered(agent):
    an_effect("done", row=rows_of(a_proposed_plan(rows=1))[0])
    plan = a_proposed_plan(rows=1)
    assert agent.get(f"plans/{plan.pk}/rows").json()["rows"][0]["state"] == "covered"
    assert agent.get(f"plans/{plan.pk}").json()["counts"]["covered"] == 1


@pytest.mark.parametrize("query", [{"cursor": "x"}, {"cursor": -1}, {"cursor": 2**63}, {"limit": 0}, {"limit": 1001}])
def test_a_page_that_makes_no_sense_is_refused(agent, query):
    assert agent.get(f"plans/{a_draft().pk}/rows", **query).status_code == 422
