"""The page of one effect, the desk, and what people do there."""

from typing import Any

import pytest
from django.test import Client

from audit.models import Entry
from effects.models import Effect, Epoch, KeptReply, LookUp
from effects.transcripts import as_hex, as_json, as_text
from tests import world

RAW = b'HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n{"error": "later"}'


def page_of(effect: Effect) -> str:
    return f"/acme/effects/{effect.pk}/"


def on_the_desk(effect: Effect) -> dict[str, str]:
    return {"HX-Request": "true", "HX-Target": f"case-{effect.pk}"}


@pytest.mark.parametrize("state", ["pending", "done", "unknown", "failed", "stranded", "revoked"])
def test_every_state_has_its_page(state: str, dana: Client) -> None:
    effect = world.an_effect(state)
    html = dana.get(page_of(effect)).content.decode()
    assert f"st-{state}" in html
    assert effect.key in html
    assert "Reserved, before the first byte left" in html


def test_it_tells_the_story_in_order(dana: Client) -> None:
    effect = world.an_effect("pending")
    KeptReply.objects.create(effect=effect, kind="answered", raw=RAW, note="503")
    Effect.objects.filter(pk=effect.pk).update(
        state="unknown", reason="nobody knows", settled_by="a worker", settled_at="2099-01-01T00:00Z"
    )
    for _ in range(3):
        LookUp.objects.create(effect=effect, by="sweeper", answer="absent", at="2099-01-02T00:00Z")
    html = dana.get(page_of(effect)).content.decode()
    story = ["Reserved, before", "The provider answered", "Became unknown", "The provider does not find it", "3 times"]
    places = [html.index(words) for words in story]
    assert places == sorted(places)


def test_a_raw_reply_is_for_those_who_may_read_it(dana: Client, alice: Client) -> None:
    effect = world.an_effect("pending")
    KeptReply.objects.create(effect=effect, kind="answered", raw=RAW)
    assert "Service Unavailable" in dana.get(page_of(effect)).content.decode()
    assert "&quot;error&quot;: &quot;later&quot;" in dana.get(f"{page_of(effect)}?raw=json").content.decode()
    assert "000000  48 54 54 50" in dana.get(f"{page_of(effect)}?raw=hex").content.decode()
    for tab in ("text", "json", "hex"):
        html = alice.get(f"{page_of(effect)}?raw={tab}").content.decode()
        assert "Unavailable" not in html
        assert "48 54 54 50" not in html


def test_any_bytes_can_be_read() -> None:
    every = bytes(range(256)) * 300
    assert "[U+0000]" in as_text(every)
    assert as_json(every) == ""
    assert as_json(b"[" * 100_000) == ""
    assert as_hex(b"AB\x00").startswith("000000  41 42 00")


def test_dana_says_that_it_arrived(dana: Client) -> None:
    effect = world.an_effect("unknown")
    sent = {"to": "done", "evidence": "250 queued as 7", "reason": "Seen in the log.", "state": "unknown"}
    answer = dana.post(f"{page_of(effect)}resolution/", sent)
    assert (answer.status_code, answer["Location"]) == (303, page_of(effect))
    effect.refresh_from_db()
    assert (effect.state, effect.receipt, effect.settled_by) == ("done", "250 queued as 7", "Dana <dana@people.example>")
    assert Entry.objects.filter(object_kind="effect", object_id=effect.pk, reason="Seen in the log.").exists()


def test_the_risk_is_named_where_something_is_sent_again(dana: Client) -> None:
    effect = world.an_effect("unknown")
    assert "If it did arrive, this person will get it twice." in dana.get(page_of(effect)).content.decode()
    sent = {"to": "failed", "reason": "The log has nothing.", "state": "unknown", "again": "1"}
    assert dana.post(f"{page_of(effect)}resolution/", sent).status_code == 303
    effect.refresh_from_db()
    assert effect.state == "failed"
    assert effect.retry_at


@pytest.mark.parametrize(
    "sent",
    [
        {"to": "done", "reason": "I typed this.", "state": "unknown"},
        {"to": "failed", "evidence": "I typed this.", "state": "unknown"},
        {"to": "stranded", "reason": "I typed this.", "state": "unknown", "again": "1"},
        {"to": "pending", "reason": "I typed this.", "state": "unknown"},
        {"reason": "I typed this.", "state": "unknown"},
        {"to": "done", "reason": "I typed this.", "evidence": "x"},
    ],
)
def test_a_ruling_that_cannot_be_keeps_what_was_typed(sent: dict[str, Any], dana: Client) -> None:
    effect = world.an_effect("unknown")
    for headers in ({}, on_the_desk(effect)):
        answer = dana.post(f"{page_of(effect)}resolution/", sent, headers=headers)
        assert answer.status_code == 422
        assert "I typed this." in answer.content.decode()
    effect.refresh_from_db()
    assert effect.state == "unknown"


def test_a_lost_race_shows_the_card_as_it_stands(dana: Client) -> None:
    effect = world.an_effect("unknown")
    Effect.objects.filter(pk=effect.pk).update(state="done", receipt="r", settled_by="Ana")
    sent = {"to": "failed", "reason": "Nothing in the log.", "state": "unknown"}
    for headers in ({}, on_the_desk(effect)):
        answer = dana.post(f"{page_of(effect)}resolution/", sent, headers=headers)
        assert answer.status_code == 409
        html = answer.content.decode()
        assert "This effect is done by now (Ana)" in html
        assert "st-done" in html


def test_on_the_desk_only_the_card_is_drawn_again(dana: Client) -> None:
    effect = world.an_effect("unknown")
    sent = {"to": "stranded", "reason": "Half made.", "state": "unknown"}
    html = dana.post(f"{page_of(effect)}resolution/", sent, headers=on_the_desk(effect)).content.decode()
    assert f'id="case-{effect.pk}"' in html
    assert "<html" not in html
    assert "is stranded now" in html


def test_without_javascript_the_desk_comes_back(dana: Client) -> None:
    effect = world.an_effect("unknown")
    sent = {"to": "stranded", "reason": "Half made.", "state": "unknown", "from": "desk"}
    assert dana.post(f"{page_of(effect)}resolution/", sent)["Location"] == "/acme/unknown/"


def test_a_stranded_effect_is_taken_back(dana: Client) -> None:
    effect = world.an_effect("stranded")
    assert dana.post(f"{page_of(effect)}revocation/", {"reason": "", "state": "stranded"}).status_code == 422
    assert dana.post(f"{page_of(effect)}revocation/", {"reason": "Cleaned up.", "state": "unknown"}).status_code == 409
    assert dana.post(f"{page_of(effect)}revocation/", {"reason": "Cleaned up.", "state": "stranded"}).status_code == 303
    effect.refresh_from_db()
    assert effect.state == "revoked"


def test_an_epoch_is_opened_once_with_a_reason(dana: Client) -> None:
    effect = world.an_effect("done")
    assert "reaches this target a second time" in dana.get(page_of(effect)).content.decode()
    assert dana.post(f"{page_of(effect)}epoch/", {"reason": " ", "epoch": 0}).status_code == 422
    assert dana.post(f"{page_of(effect)}epoch/", {"reason": "Wrong prices.", "epoch": 3}).status_code == 409
    assert dana.post(f"{page_of(effect)}epoch/", {"reason": "Wrong prices.", "epoch": 0}).status_code == 303
    assert dana.post(f"{page_of(effect)}epoch/", {"reason": "Again.", "epoch": 0}).status_code == 409
    assert Epoch.objects.get().reason == "Wrong prices."
    assert "Wrong prices." in dana.get(page_of(effect)).content.decode()


def test_asking_a_provider_that_cannot_be_asked_says_so(dana: Client) -> None:
    effect = world.an_effect("unknown")
    assert "cannot be asked" in dana.get(page_of(effect)).content.decode()
    for headers in ({}, on_the_desk(effect)):
        answer = dana.post(f"{page_of(effect)}look-up/", headers=headers)
        assert answer.status_code == 422
        assert "no look-up address" in answer.content.decode()


def test_reviewers_see_and_do_not_settle(alice: Client) -> None:
    effect = world.an_effect("unknown")
    html = alice.get("/acme/unknown/").content.decode()
    assert effect.target in html
    assert "resolution/" not in html


def test_the_desk_is_oldest_first_and_shows_the_evidence(dana: Client) -> None:
    first = world.an_effect("unknown", target="first@example.com", reason="the worker died")
    world.an_effect("unknown", target="second@example.com")
    world.an_effect("stranded", target="third@example.com")
    for answer in ("absent", "absent", "inconclusive"):
        LookUp.objects.create(effect=first, by="sweeper", answer=answer)
    html = dana.get("/acme/unknown/").content.decode()
    places = [html.index(f"{name}@example.com") for name in ("first", "second", "third")]
    assert places == sorted(places)
    assert "the worker died" in html
    assert "absent ×2, inconclusive" in html


def test_an_empty_desk_is_good_news(dana: Client) -> None:
    assert "The desk is clear" in dana.get("/acme/unknown/").content.decode()


def test_a_full_desk_takes_no_more_queries(dana: Client, queries_of: Any) -> None:
    world.an_effect("unknown", target="one@example.com")
    one = queries_of(dana, "/acme/unknown/")
    for number in range(30):
        effect = world.an_effect("unknown", target=f"{number}@example.com")
        KeptReply.objects.create(effect=effect, kind="lost", raw=b"", note="cut")
        LookUp.objects.create(effect=effect, by="sweeper", answer="absent")
    assert queries_of(dana, "/acme/unknown/") == one
    assert 'rel="next"' in dana.get("/acme/unknown/").content.decode()
