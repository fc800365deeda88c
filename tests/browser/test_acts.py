"""What people do, in a real browser."""

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import expect

from approvals.models import Plan
from effects.models import Effect
from tests import world
from tests.browser.conftest import Opener

pytestmark = pytest.mark.django_db(transaction=True)


def test_alice_signs_in_and_sees_what_waits(opened: Opener) -> None:
    world.alice()
    world.a_proposed_plan(3, title="Please decide")
    with opened() as page:
        page.goto("/acme/inbox/")
        page.get_by_label("Email").fill("alice@people.example")
        page.get_by_label("Password").fill("not this one")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("Password").fill(world.PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name=re.compile("Please decide"))).to_be_visible()


def test_alice_approves_and_watches_it_go_out(opened: Opener) -> None:
    plan = world.a_proposed_plan(3)
    with opened(world.alice()) as page:
        page.goto(f"/acme/plans/{plan.pk}/")
        page.get_by_label("Note (optional)").fill("Read all three.")
        page.get_by_role("button", name="Approve 3 effects").click()
        expect(page.get_by_role("heading", name="Approved")).to_be_visible()
        page.evaluate("window.still = true")
        first, second, third = world.rows_of(plan)
        world.an_effect("done", row=first)
        expect(page.locator("[data-count=done]")).to_have_text("1")
        expect(page.locator("#rows .st-done")).to_have_count(1)
        world.an_effect("done", row=second)
        world.an_effect("failed", row=third)
        expect(page.locator("#progress [role=status]")).to_have_text("Settled.")
        assert page.evaluate("window.still"), "the page was loaded again"
    assert plan.decisions.get().reason == "Read all three."


def test_without_scripts_it_is_approved_all_the_same(opened: Opener) -> None:
    plan = world.a_proposed_plan(2)
    with opened(world.alice(), script=False) as page:
        page.goto(f"/acme/plans/{plan.pk}/?text=customer2")
        expect(page.locator("#rows tbody tr")).to_have_count(1)
        page.get_by_role("button", name="Approve 2 effects").click()
        expect(page.get_by_role("heading", name="Approved")).to_be_visible()
        page.locator("summary", has_text="Pause").click()
        page.get_by_label("Reason").first.fill("A look first.")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("Nothing new starts: A look first.")).to_be_visible()


def test_a_plan_that_changed_on_the_way_is_shown_again(opened: Opener) -> None:
    plan = world.a_proposed_plan(2)
    with opened(world.alice(), expected="409") as page:
        page.goto(f"/acme/plans/{plan.pk}/")
        page.locator("#approval-digest").evaluate("element => { element.value = 'sha256:something else' }")
        page.get_by_role("button", name="Approve 2 effects").click()
        refusal = page.get_by_role("alert").filter(has_text="not what was on your screen")
        expect(refusal).to_be_focused()
    assert Plan.objects.get().state == "proposed"


def test_dana_settles_an_unknown_on_her_phone(opened: Opener) -> None:
    effect = world.an_effect("unknown", target="lost@example.com")
    world.an_effect("unknown", target="later@example.com")
    with opened(world.dana(), width=390, expected="422") as page:
        page.goto("/acme/unknown/")
        card = page.locator(f"#case-{effect.pk}")
        card.get_by_text("Say what happened").click()
        card.get_by_label("It arrived").check()
        card.get_by_label("Reason").fill("The recipient confirmed it.")
        card.get_by_role("button", name="Settle it").click()
        expect(card.get_by_role("alert").filter(has_text="Name the evidence")).to_be_focused()
        expect(card.get_by_label("Reason")).to_have_value("The recipient confirmed it.")
        card.get_by_role("textbox", name="Evidence").fill("Their answer of today")
        card.get_by_role("button", name="Settle it").click()
        expect(card.get_by_text("is done now, on your word")).to_be_visible()
        expect(page.get_by_text("later@example.com")).to_be_visible()
    assert Effect.objects.get(pk=effect.pk).receipt == "Their answer of today"


def test_the_risk_shows_when_it_matters(opened: Opener) -> None:
    effect = world.an_effect("unknown")
    with opened(world.dana()) as page:
        page.goto(f"/acme/effects/{effect.pk}/")
        risk = page.get_by_text("this person will get it twice")
        expect(risk).to_be_hidden()
        page.get_by_label("It did not happen").check()
        expect(risk).to_be_visible()


class Canary(BaseHTTPRequestHandler):
    """Counts whoever fetches anything from it."""

    hits: list[str] = []

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        return


def test_looking_at_a_letter_fetches_and_runs_nothing(opened: Opener) -> None:
    server = HTTPServer(("127.0.0.1", 0), Canary)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = f"http://127.0.0.1:{server.server_port}"
    html = (
        f'<style>@import "{there}/a"; p{{background:url({there}/b)}}</style><link rel="stylesheet" href="{there}/c">'
        f'<img src="{there}/d"><p style="background:url({there}/e)">Dear customer</p><script src="{there}/f"></script>'
        f'<iframe src="{there}/g"></iframe><img src=x onerror="top.name=1"><meta http-equiv="refresh" content="0;url={there}/h">'
    )
    plan = world.a_proposed_plan([world.a_row(1, html=html)])
    with opened(world.alice()) as page:
        page.goto(f"/acme/plans/{plan.pk}/rows/1/?part=html")
        expect(page.frame_locator("iframe").get_by_text("Dear customer")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.name") == ""
    server.shutdown()
    assert Canary.hits == []
