"""Late news: shown where it matters, counted in the frame, and gone when a person with the right has seen it."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.errors import LostRace, Refused
from audit.models import Entry
from effects import seeing
from effects.models import Callback, Channel, Effect
from tests import world
from tests.callers import kept, takes_callbacks

pytestmark = pytest.mark.django_db(transaction=True)

TITLE = "The provider says otherwise"


def late_news(effect: Effect | None = None, kind: str = "bounced", **fields: Any) -> Callback:
    """A callback that contradicts the ledger, as the sweeper leaves it."""
    one = kept(effect or world.an_effect("done"), kind, **fields)
    Callback.objects.filter(pk=one.pk).update(outcome="contrary", applied_at=timezone.now(), due_at=None)
    one.refresh_from_db()
    return one


def page_of(effect: Effect) -> str:
    return f"/acme/effects/{effect.pk}/"


def badge(browser: Client) -> str:
    """The figure beside the inbox."""
    html = browser.get("/acme/inbox/count/").content.decode()
    return html.partition('id="badge-inbox"')[2].partition(">")[2].partition("<")[0]


def test_dana_sees_it_says_so_and_it_is_gone(dana: Client) -> None:
    one = late_news(reason="mailbox full")
    html = dana.get("/acme/inbox/").content.decode()
    assert TITLE in html
    assert f'href="{page_of(one.effect)}#late"' in html
    assert "done here, bounced there" in html
    assert badge(dana) == "1"
    html = dana.get(page_of(one.effect)).content.decode()
    assert "this target has probably not got it. The effect stays done." in html
    assert dana.post(f"{page_of(one.effect)}news/", {"callback": one.pk, "reason": "Called them."}).status_code == 303
    one.refresh_from_db()
    assert (one.seen_by, one.seen_reason) == ("Dana <dana@people.example>", "Called them.")
    entry = Entry.objects.get(act="late news seen")
    assert (entry.reason, entry.object_id, entry.before) == ("Called them.", one.effect_id, {"state": "done"})
    assert entry.after == {"callback": one.pk, "told": "bounced", "event": one.event_id}
    html = dana.get("/acme/inbox/").content.decode()
    assert TITLE not in html
    assert "Nothing waits for you" in html
    assert badge(dana) == ""
    html = dana.get(page_of(one.effect)).content.decode()
    assert "Called them." in html
    assert "news/" not in html
    one.effect.refresh_from_db()
    assert one.effect.state == "done"


def test_who_sees_it_first_sees_it_alone(dana: Client) -> None:
    one = late_news()
    at = f"{page_of(one.effect)}news/"
    assert dana.post(at, {"callback": one.pk, "reason": "First."}).status_code == 303
    answer = dana.post(at, {"callback": one.pk, "reason": "Second."})
    assert (answer.status_code, "Dana &lt;dana@people.example&gt; has seen this." in answer.content.decode()) == (409, True)
    assert Entry.objects.filter(act="late news seen").count() == 1


def test_it_needs_a_reason_and_keeps_what_was_typed(dana: Client) -> None:
    one = late_news()
    other = late_news(one.effect, "rejected")
    answer = dana.post(f"{page_of(one.effect)}news/", {"callback": one.pk, "reason": " "})
    html = answer.content.decode()
    assert (answer.status_code, html.count("This field is required")) == (422, 1)
    assert html.count('name="callback"') == 2
    assert f'value="{other.pk}"' in html
    assert not Entry.objects.filter(act="late news seen").exists()


@pytest.mark.parametrize("person", ["alice", "ed"])
def test_it_refuses_who_does_not_operate(person: str) -> None:
    one = late_news()
    browser = world.signed_in(getattr(world, person)())
    assert browser.post(f"{page_of(one.effect)}news/", {"callback": one.pk, "reason": "x"}).status_code == 403
    with pytest.raises(Refused, match="may not resolve"):
        seeing.see(one.effect, one.pk, by=world.acting(getattr(world, person)()), reason="x")
    assert badge(browser) == ""
    html = browser.get(page_of(one.effect)).content.decode()
    assert "an operator takes note of this" in html
    assert "news/" not in html


def test_it_refuses_charlie(charlie: Client) -> None:
    one = late_news()
    assert charlie.post(f"{page_of(one.effect)}news/", {"callback": one.pk, "reason": "x"}).status_code == 404
    operator = world.acting(world.a_person("Olga", world.Role.OPERATOR, world.a_workspace("globex")))
    with pytest.raises(Refused):
        seeing.see(one.effect, one.pk, by=operator, reason="x")
    assert TITLE not in charlie.get("/globex/inbox/").content.decode()


def test_news_of_another_effect_is_not_seen_by_way_of_this_one(dana: Client) -> None:
    one = late_news()
    mine = world.an_effect("done", target="other@example.com")
    waits = kept(world.an_effect("unknown", target="third@example.com"), "bounced")
    assert dana.post(f"{page_of(mine)}news/", {"callback": one.pk, "reason": "x"}).status_code == 409
    with pytest.raises(LostRace, match="no news"):
        seeing.see(waits.effect, waits.pk, by=world.acting(world.dana()), reason="x")
    assert badge(dana) == "2"  # this news, and the unknown effect


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ("done", "rejected", "refused it afterwards"),
        ("failed", "delivered", "this target got it twice"),
        ("revoked", "delivered", "it arrived all the same"),
        ("stranded", "delivered", "now it arrived"),
    ],
)
def test_each_contradiction_has_its_sentence(dana: Client, state: str, kind: str, words: str) -> None:
    one = late_news(world.an_effect(state), kind)
    assert words in dana.get(page_of(one.effect)).content.decode()


def test_an_unknown_effect_shows_what_was_told_on_its_page_and_on_the_desk(dana: Client) -> None:
    effect = world.an_effect("unknown")
    kept(effect, "bounced", reason="<b>no such user</b>")
    kept(effect, "delivered")
    html = dana.get(page_of(effect)).content.decode()
    assert "only a person may say that it did not happen" in html
    assert "It names no receipt, so it is no proof" in html
    assert "before you settle this" in html
    desk = dana.get("/acme/unknown/").content.decode()
    assert "(no proof by itself)" in desk
    for page in (html, desk):
        assert "&lt;b&gt;no such user&lt;/b&gt;" in page
        assert "<b>no such user" not in page
    assert TITLE not in dana.get("/acme/inbox/").content.decode()


def test_the_bytes_are_for_those_who_may_read_them(dana: Client, alice: Client) -> None:
    one = late_news(raw=b'{"secret": "\xff\x00<script>"}')
    html = dana.get(page_of(one.effect)).content.decode()
    assert "{&quot;secret&quot;: &quot;\ufffd[U+0000]&lt;script&gt;&quot;}" in html
    html = alice.get(page_of(one.effect)).content.decode()
    assert "secret&quot;" not in html
    assert "for operators, auditors and admins" in html


def test_a_long_list_of_news_takes_no_more_queries(dana: Client, queries_of: Any) -> None:
    effect = late_news().effect
    pages = ("/acme/inbox/", "/acme/unknown/", page_of(effect))
    before = [queries_of(dana, page) for page in pages]
    for number in range(30):
        late_news(world.an_effect("done", target=f"{number}@example.com"))
        late_news(effect, event_id=f"more-{number}")
    assert [queries_of(dana, page) for page in pages] == before
    assert "61 to look at" in dana.get("/acme/inbox/").content.decode()


def test_channels_say_whether_callbacks_are_on_and_where(dana: Client) -> None:
    takes_callbacks(world.a_channel())
    broken = world.a_channel(slug="broken")
    Channel.objects.filter(pk=broken.pk).update(secrets="sealed with a key that is gone")
    html = dana.get("/acme/channels/").content.decode()
    assert "http://testserver/callbacks/acme/letters/" in html
    assert "whsec" not in html
    assert "/callbacks/acme/broken/" not in html
    assert "a secret called callback_secret turns them on" in html
