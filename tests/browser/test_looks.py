"""Every page, in both themes, on a desk and on a phone: readable by everybody, no console message, nothing sideways."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page, expect

from approvals import opting_out, voting
from approvals.models import Chunk
from effects import rulings
from effects.models import Callback, Challenge, KeptReply, LookUp, Pause
from tests import world
from tests.browser.conftest import Opener
from tests.callers import kept, takes_callbacks

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "Bestandskundenpflegebriefaktion" * 6


def a_full_workspace() -> Iterator[str]:
    """Awkward things of every kind; yields the address of each page that shows them."""
    world.alice()
    run = world.a_run(tools=["crm.search"])
    html = '<table width="900"><tr><td><a href="https://evil.example">www.acme.example</a><img src="https://x.example/p"></td></tr></table>'
    rows = [
        world.a_row(1, target=f"{'x' * 60}@example.com", subject="Free\u200b gift", html=html),
        world.a_row(2, subject="مرحبا بكم في متجرنا", text="عزيزتي فاطمة، وصلت الدفاتر الجديدة إلى المتجر."),
        world.a_row(3, subject="<b>bold</b>", text="y" * 400),
    ]
    proposed = world.a_proposed_plan(rows, title=LONG, run_id=str(run.pk), rationale="It is spring.\n" + LONG)
    going = world.a_proposed_plan(9, title="Going out", event_id="out", run_id=str(run.pk))
    voting.approve(going, by=world.acting(world.alice()), digest=going.digest)
    states = ("done", "failed", "unknown", "stranded", "revoked", "pending")
    effects = [world.an_effect(state, row=row) for state, row in zip(states, world.rows_of(going), strict=False)]
    for effect in effects[:4]:
        KeptReply.objects.create(effect=effect, kind="answered", raw=b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 500, note="noted")
        LookUp.objects.create(effect=effect, by="sweeper", answer="absent")
        kept(
            effect,
            "delivered",
            reason="<b>it says</b> " + LONG,
            event_id=f"evt-{effect.pk}-{'x' * 80}",
            raw=b'{"a":\n' + b"z" * 900,
        )
        kept(effect, "bounced", reason="الصندوق ممتلئ", said_at=timezone.now())
    gone = b"HTTP/1.1 410 Gone\r\n\r\n" + b"w" * 900
    Challenge.objects.create(effect=effects[3], by="worker", kind="answered", raw=gone, note=LONG, kept_at=timezone.now())
    applied = Callback.objects.exclude(effect=effects[2])  # an unknown effect's callbacks wait
    applied.update(outcome="agreed", applied_at=timezone.now(), due_at=None)
    told = kept(effects[0], "rejected", reason=LONG)
    Callback.objects.filter(pk=told.pk).update(outcome="contrary", applied_at=timezone.now(), due_at=None)
    told = kept(effects[1], "delivered", reason="")
    Callback.objects.filter(pk=told.pk).update(outcome="contrary", applied_at=timezone.now(), due_at=None)
    takes_callbacks(world.a_channel())
    rulings.open_epoch(effects[0], by=world.acting(world.dana()), reason=f"Wrong prices. {LONG}", seen_epoch=0)
    channel = world.a_channel()
    Pause.objects.create(workspace=channel.workspace, subject=f"channel:{channel.pk}", reason="429", started_by="machine")
    world.an_opt_out("customer9@example.com", reason=LONG)
    Chunk.objects.update(due_at=timezone.now() - timedelta(minutes=1))
    world.an_opt_out(f"{'y' * 60}@example.com", reason=LONG)
    opting_out.lift(world.an_opt_out("back@example.com", reason="راسلنا"), by=world.acting(world.dana()), reason="Asked again.")
    yield from ("/", "/accounts/password/change/", "/accounts/logout/")
    yield from (
        f"/acme/{name}/"
        for name in ("inbox", "plans", "runs", "effects", "unknown", "epochs", "audit", "opt-outs", "channels", "people")
    )
    yield from (f"/acme/plans/{plan.pk}/" for plan in (proposed, going))
    yield from (f"/acme/plans/{proposed.pk}/rows/1/?part={part}" for part in ("text", "html", "source"))
    yield from (f"/acme/effects/{effect.pk}/" for effect in effects)
    yield f"/acme/runs/{run.pk}/"
    yield "/acme/effects/?target=nobody"


def look_at(page: Page, address: str) -> list[str]:
    """What is wrong with one page."""
    page.goto(address)
    found = Axe().run(page, options={"iframes": False}).response["violations"]
    wrong = [f"{address}: {one['id']} at {[node['target'] for node in one['nodes']][:3]}" for one in found]
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        wrong.append(f"{address}: scrolls sideways")
    return wrong


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_every_page_is_in_order(theme: str, width: int, opened: Opener) -> None:
    addresses = list(a_full_workspace())
    with opened(world.a_person("Ada", world.Role.ADMIN), theme=theme, width=width) as page:
        assert [words for address in addresses for words in look_at(page, address)] == []
    with opened(theme=theme, width=width) as page:
        assert look_at(page, "/accounts/login/") == []


def test_the_keyboard_is_enough(opened: Opener) -> None:
    plan = world.a_proposed_plan(3)
    with opened(world.alice()) as page:
        page.goto(f"/acme/plans/{plan.pk}/")
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the content")).to_be_focused()
        page.keyboard.press("j")
        expect(page.locator("#letter")).to_contain_text("customer2@example.com")
        page.keyboard.press("/")
        page.keyboard.type("customer3")
        expect(page.locator("#rows tbody tr")).to_have_count(1)
        expect(page.locator("#rows-text")).to_be_focused()
        assert page.url.endswith("?text=customer3&state=")


def test_a_letter_that_arrives_late_leaves_the_typist_alone(opened: Opener) -> None:
    plan = world.a_proposed_plan(3)
    with opened(world.alice()) as page:
        page.goto(f"/acme/plans/{plan.pk}/")
        page.evaluate("htmx.config.defaultSettleDelay = 800")
        page.keyboard.press("j")
        expect(page.locator("#letter")).to_contain_text("customer2@example.com")
        page.keyboard.press("/")
        page.wait_for_timeout(1000)
        expect(page.locator("#rows-text")).to_be_focused()


def test_colours_change_at_once_and_stay(opened: Opener) -> None:
    with opened(world.alice()) as page:
        page.goto("/acme/inbox/")
        page.locator(".side .theme").get_by_role("button", name="Dark").click()
        expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
        page.wait_for_load_state("networkidle")
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_the_menu_opens_on_a_phone(opened: Opener) -> None:
    with opened(world.alice(), width=390) as page:
        page.goto("/acme/inbox/")
        expect(page.get_by_role("link", name="Channels")).to_be_hidden()
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Channels").click()
        expect(page.get_by_role("heading", name="Channels")).to_be_visible()
