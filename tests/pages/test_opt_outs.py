"""The page of opt-outs: noted by people who may, looked up, and lifted with a reason."""

import pytest
from django.test import Client

from approvals.models import OptOut
from audit.models import Entry
from tests import world

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "/acme/opt-outs/addition/"


def test_alice_notes_two_and_the_plans_page_tells(alice: Client) -> None:
    plan = world.a_proposed_plan(3)
    answer = alice.post(ADD, {"targets": " customer1@example.com\r\n\r\ncustomer2@example.com", "reason": "they wrote to us"})
    assert (answer.status_code, answer["Location"]) == (303, "/acme/opt-outs/")
    page = alice.get("/acme/opt-outs/").content.decode()
    assert "2 opted out." in page
    assert "customer1@example.com" in page
    assert "they wrote to us" in page
    html = alice.get(f"/acme/plans/{plan.pk}/?state=excluded").content.decode()
    assert 'data-count="excluded">2<' in html
    assert "customer2@example.com" in html
    assert "Opted out: they wrote to us" in alice.get(f"/acme/plans/{plan.pk}/rows/1/").content.decode()
    assert OptOut.objects.count() == 2


def test_what_was_typed_comes_back_with_the_line_that_is_wrong(alice: Client) -> None:
    answer = alice.post(ADD, {"targets": "ana@example.com\nbe\x07n", "reason": "they wrote"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "Line 2:" in html
    assert "ana@example.com" in html
    assert "they wrote" in html
    answer = alice.post(ADD, {"targets": "ana@example.com", "channel": "nowhere", "reason": ""})
    assert answer.status_code == 422
    assert not OptOut.objects.exists()


def test_one_channel_alone(alice: Client) -> None:
    world.a_channel(slug="letters")
    assert alice.post(ADD, {"targets": "ana@example.com", "channel": "letters", "reason": "no letters"}).status_code == 303
    assert OptOut.objects.filter(channel__slug="letters").count() == 1


def test_lifting_needs_a_reason_and_happens_once(dana: Client) -> None:
    held = world.an_opt_out()
    lifting = f"/acme/opt-outs/{held.pk}/lifting/"
    assert dana.post(lifting, {"reason": ""}).status_code == 422
    assert dana.post(lifting, {"reason": "She asked for it."}).status_code == 303
    again = dana.post(lifting, {"reason": "Once more."})
    assert again.status_code == 409
    assert "lifted already" in again.content.decode()
    entry = Entry.objects.get(act="opt-out lifted")
    assert (entry.reason, entry.object_name) == ("She asked for it.", held.target)
    assert "lifted by Dana" in dana.get("/acme/opt-outs/").content.decode()


def test_a_refused_lifting_is_told_where_it_was_pressed(dana: Client) -> None:
    held = world.an_opt_out()
    for n in range(60):
        world.an_opt_out(f"later{n}@example.com")
    lifting = f"/acme/opt-outs/{held.pk}/lifting/"
    html = dana.post(lifting, {"reason": "  "}).content.decode()
    assert "This field is required." in html, "its row is on another page: the sentence stands above the list"
    assert 'href="/acme/opt-outs/?after=' in html, "the pager leads back to the list"
    html = dana.post(f"{lifting}?target=customer1", {"reason": "  "}).content.decode()
    assert f'action="{lifting}?target=customer1"' in html
    assert "This field is required." in html


def test_another_workspace_has_its_own(alice: Client, charlie: Client) -> None:
    held = world.an_opt_out()
    world.charlie()
    assert charlie.get("/acme/opt-outs/").status_code == 404
    assert charlie.post(f"/globex/opt-outs/{held.pk}/lifting/", {"reason": "x"}).status_code == 404
    assert held.target not in charlie.get("/globex/opt-outs/").content.decode()


def test_an_auditor_reads_and_does_not_write(ed: Client) -> None:
    held = world.an_opt_out()
    html = ed.get("/acme/opt-outs/?target=customer").content.decode()
    assert held.target in html
    assert "addition" not in html
    assert "lifting" not in html
    assert ed.post(ADD, {"targets": "x@example.com", "reason": "x"}).status_code == 403


def test_the_filter_finds_a_part_of_a_target(alice: Client) -> None:
    world.an_opt_out("ana@example.com")
    world.an_opt_out("ben@example.com")
    html = alice.get("/acme/opt-outs/?target=ANA@", headers={"HX-Request": "true", "HX-Target": "opt-outs"}).content.decode()
    assert "ana@example.com" in html
    assert "ben@example.com" not in html
    assert "<h1" not in html
    assert "Nobody like that" in alice.get("/acme/opt-outs/?target=zoe").content.decode()
