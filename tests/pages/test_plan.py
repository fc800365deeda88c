"""The page of one plan, and what people do there."""

import re
from typing import Any

import pytest
from django.test import Client

from approvals import halting, voting
from approvals.coverage import FIGURES
from approvals.models import Chunk, Plan, PlanState
from audit.models import Entry
from tests import world

HTMX = {"HX-Request": "true", "HX-Target": "decision"}


def page_of(plan: Plan) -> str:
    return f"/acme/plans/{plan.pk}/"


def figures_on(html: str) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r'data-count="(\w+)">(\d+)<', html)}


def approved(rows: int = 3) -> Plan:
    plan = world.a_proposed_plan(rows)
    voting.approve(plan, by=world.acting(world.alice()), digest=plan.digest)
    plan.refresh_from_db()
    return plan


def test_it_shows_what_is_decided_on(alice: Client) -> None:
    plan = world.a_proposed_plan(3, rationale="It is spring.")
    html = alice.get(page_of(plan)).content.decode()
    for words in ("Spring sale", "It is spring.", "customer1@example.com", "send_email", "letters", plan.digest, "Bob"):
        assert words in html
    assert "In the agent's own words" in html


def test_the_sum_is_marked_and_adds_up(alice: Client) -> None:
    plan = approved(9)
    for state, row in zip(("done", "failed", "unknown", "stranded", "revoked", "pending"), world.rows_of(plan), strict=False):
        world.an_effect(state, row=row)
    figures = figures_on(alice.get(page_of(plan)).content.decode())
    assert figures == {
        "rows": 9, "excluded": 0, "done": 1, "failed": 1, "unknown": 1, "stranded": 1, "revoked": 1, "pending": 1,
        "waiting": 3, "covered": 0,
    }  # fmt: skip
    assert figures["rows"] - figures["excluded"] == sum(figures[name] for name in FIGURES)


def test_alice_approves_what_she_saw(alice: Client) -> None:
    plan = world.a_proposed_plan()
    answer = alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest, "reason": "Fine."})
    assert (answer.status_code, answer["Location"]) == (303, page_of(plan))
    decision = plan.decisions.get()
    assert (decision.kind, decision.digest, decision.reason) == ("approved", plan.digest, "Fine.")
    html = alice.get(page_of(plan)).content.decode()
    assert "Approved. What you saw is frozen" in html
    assert "this was not me" in html


def test_with_htmx_the_whole_page_follows(alice: Client) -> None:
    plan = world.a_proposed_plan()
    answer = alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest}, headers=HTMX)
    assert answer["HX-Redirect"] == page_of(plan)


def test_another_digest_is_a_lost_race_with_the_plan_as_it_stands(alice: Client) -> None:
    plan = world.a_proposed_plan()
    answer = alice.post(f"{page_of(plan)}approval/", {"digest": "sha256:" + "0" * 64})
    assert answer.status_code == 409
    assert "not what was on your screen" in answer.content.decode()
    assert plan.digest in answer.content.decode()
    assert not plan.decisions.exists()


def test_a_second_approval_hears_who_was_first(alice: Client) -> None:
    plan = world.a_proposed_plan()
    voting.approve(plan, by=world.acting(world.a_person("Ana", world.Role.REVIEWER)), digest=plan.digest)
    answer = alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest}, headers=HTMX)
    assert answer.status_code == 409
    html = answer.content.decode()
    assert "Ana decided" in html
    assert 'id="decision"' in html
    assert "<html" not in html
    assert plan.decisions.count() == 1


def test_bob_is_told_that_somebody_else_has_to_decide(bob: Client) -> None:
    plan = world.a_proposed_plan()
    html = bob.get(page_of(plan)).content.decode()
    assert "somebody else has to approve it" in html
    assert f"{page_of(plan)}approval/" not in html
    answer = bob.post(f"{page_of(plan)}approval/", {"digest": plan.digest})
    assert answer.status_code == 422
    assert not plan.decisions.exists()


def test_warnings_must_be_ticked_and_the_note_is_not_lost(alice: Client) -> None:
    plan = world.a_proposed_plan([world.a_row(1, text="Dear\u200b customer, your order has left our house.")])
    codes = [check["code"] for check in plan.checks]
    assert codes
    answer = alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest, "reason": "I typed this."})
    assert answer.status_code == 422
    assert "I typed this." in answer.content.decode()
    assert not plan.decisions.exists()
    assert alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest, "ticked": codes}).status_code == 303


def test_a_blocking_check_leaves_no_button(alice: Client) -> None:
    plan = world.a_proposed_plan([world.a_row(1, text="Dear {{ name }}, your order has left our house.")])
    html = alice.get(page_of(plan)).content.decode()
    assert "Stops approval" in html
    assert f"{page_of(plan)}approval/" not in html
    assert alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest}).status_code == 422


@pytest.mark.parametrize(("noun", "state"), [("rejection", PlanState.REJECTED), ("changes", PlanState.CHANGES_REQUESTED)])
def test_a_no_needs_a_reason(noun: str, state: PlanState, alice: Client) -> None:
    plan = world.a_proposed_plan()
    without = alice.post(f"{page_of(plan)}{noun}/", {"digest": plan.digest, "reason": " "})
    assert without.status_code == 422
    assert "This field is required" in without.content.decode()
    assert alice.post(f"{page_of(plan)}{noun}/", {"digest": plan.digest, "reason": "Too pushy."}).status_code == 303
    plan.refresh_from_db()
    assert plan.state == state
    assert "Too pushy." in alice.get(page_of(plan)).content.decode()


def test_ticked_rows_are_left_out(alice: Client) -> None:
    plan = world.a_proposed_plan(3)
    answer = alice.post(f"{page_of(plan)}exclusion/", {"positions": ["1", "3"], "reason": "They asked us to stop."})
    assert answer.status_code == 303
    html = alice.get(page_of(plan)).content.decode()
    assert figures_on(html)["excluded"] == 2
    assert "They asked us to stop." in html


@pytest.mark.parametrize(
    "sent", [{"reason": "Why not"}, {"positions": ["1"]}, {"positions": ["x", "-1", "9" * 30], "reason": "Why not"}]
)
def test_leaving_out_needs_rows_and_a_reason(sent: dict[str, Any], alice: Client) -> None:
    plan = world.a_proposed_plan(3)
    answer = alice.post(f"{page_of(plan)}exclusion/", sent)
    assert answer.status_code == 422
    html = answer.content.decode()
    assert sent.get("reason", "Rows") in html
    if sent.get("positions") == ["1"]:
        assert re.search(r'value="1"[^>]*checked', html)


def test_it_is_paused_resumed_and_stopped(alice: Client) -> None:
    plan = approved()
    assert alice.post(f"{page_of(plan)}pause/", {"reason": ""}).status_code == 422
    assert alice.post(f"{page_of(plan)}pause/", {"reason": "A look first."}).status_code == 303
    assert "A look first." in alice.get(page_of(plan)).content.decode()
    assert alice.post(f"{page_of(plan)}pause/", {"reason": "Again."}).status_code == 409
    assert alice.post(f"{page_of(plan)}resumption/").status_code == 303
    assert not halting.pauses(plan)
    assert alice.post(f"{page_of(plan)}stop/", {"reason": "Wrong prices."}).status_code == 303
    plan.refresh_from_db()
    assert plan.state == PlanState.STOPPED
    assert not Chunk.objects.filter(plan=plan, due_at__isnull=False).exists()
    assert alice.post(f"{page_of(plan)}stop/", {"reason": "Again."}).status_code == 409
    assert Entry.objects.filter(object_kind="plan", object_id=plan.pk, act="plan stopped", reason="Wrong prices.").exists()


def test_progress_is_told_only_when_something_moved(alice: Client) -> None:
    plan = approved(2)
    html = alice.get(page_of(plan)).content.decode()
    address = re.search(r'hx-get="([^"]+progress/\?v=\w+)" hx-trigger="every 2s"', html)
    assert address
    assert alice.get(address[1]).status_code == 204
    one, other = world.rows_of(plan)
    world.an_effect("done", row=one)
    moved = alice.get(address[1])
    assert (moved.status_code, moved["HX-Trigger"]) == (200, "coverage")
    assert figures_on(moved.content.decode())["done"] == 1
    world.an_effect("failed", row=other)
    settled = alice.get(address[1])
    assert settled.status_code == 286
    assert "hx-get" not in settled.content.decode()


def test_rows_are_found_by_text_and_outcome(alice: Client) -> None:
    plan = approved(12)
    world.an_effect("unknown", row=world.rows_of(plan)[6])
    rows = alice.get(f"{page_of(plan)}?text=customer1", headers={"HX-Request": "true", "HX-Target": "rows"}).content.decode()
    assert 'id="rows"' in rows
    assert "customer12@example.com" in rows
    assert "customer2@example.com" not in rows
    unknown = alice.get(f"{page_of(plan)}?state=unknown", headers={"HX-Request": "true", "HX-Target": "rows"}).content.decode()
    assert "customer7@example.com" in unknown
    assert unknown.count("<tr") == 2


def test_a_long_list_goes_by_pages_with_the_same_number_of_queries(alice: Client, queries_of: Any) -> None:
    small, big = world.a_proposed_plan(2, event_id="a"), world.a_proposed_plan(120, event_id="b")
    assert queries_of(alice, page_of(small)) == queries_of(alice, page_of(big))
    second = alice.get(f"{page_of(big)}?after=50").content.decode()
    assert "customer51@example.com" in second
    assert "customer50@example.com" not in second.split('id="rows"')[1]


def test_an_expired_plan_says_so(alice: Client) -> None:
    plan = world.a_proposed_plan()
    Plan.objects.filter(pk=plan.pk).update(expires_at="2020-01-01T00:00Z")
    html = alice.get(page_of(plan)).content.decode()
    assert "silence never becomes a yes" in html
    assert f"{page_of(plan)}approval/" not in html
    assert alice.post(f"{page_of(plan)}approval/", {"digest": plan.digest}).status_code == 409


def test_text_of_an_agent_stays_text(alice: Client) -> None:
    evil = "<script>alert(1)</script>{{ request }}"
    plan = world.a_proposed_plan([world.a_row(1, subject=evil, text=evil)], title=evil, rationale=evil)
    html = alice.get(page_of(plan)).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ request }}" in html


def test_no_get_changes_anything(alice: Client) -> None:
    plan = approved()
    before = Entry.objects.count()
    html = alice.get(page_of(plan)).content.decode()
    for address in set(re.findall(r'(?:href|hx-get)="(/acme/[^"#]+)"', html)):
        assert alice.get(address.replace("&amp;", "&")).status_code in (200, 204, 286), address
    assert Entry.objects.exclude(act="plan exported").count() == before  # who takes rows away is noted


def test_a_new_version_shows_what_changed(alice: Client) -> None:
    old = world.a_proposed_plan(3)
    rows = [world.a_row(1), world.a_row(2, text="Dear customer 2,\n\nyour parcel has left our house today.\n"), world.a_row(9)]
    new = world.a_proposed_plan(rows, replaces=old)
    html = alice.get(page_of(new)).content.decode()
    assert "<strong>1</strong> added, <strong>1</strong> changed, <strong>1</strong> no longer in it" in html
    letter = alice.get(f"{page_of(new)}rows/2/?part=changes").content.decode()
    assert "<del>order</del><ins>parcel</ins>" in letter
    assert "part=changes" not in alice.get(f"{page_of(new)}rows/1/").content.decode()
    assert "There is a newer version of this plan" in alice.get(page_of(old)).content.decode()


def test_hidden_characters_are_marked_wherever_an_agent_speaks(alice: Client) -> None:
    plan = world.a_proposed_plan([world.a_row(1, subject="For\u202e you")], title="Spring\u200b sale", rationale="It\u2066 is.")
    html = alice.get(page_of(plan)).content.decode()
    for mark in ("U+202E", "U+200B", "U+2066"):
        assert f">{mark}</mark>" in html
    for address in ("/acme/plans/", "/acme/inbox/"):
        assert ">U+200B</mark>" in alice.get(address).content.decode()
