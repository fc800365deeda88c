"""The door for providers that call back: who comes in, what is kept, and that a stranger learns nothing (S34, S45, S49, S56)."""

import base64
import json
import threading
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test import Client

from effects import callbacks
from effects.models import Callback, Channel, Effect
from effects.sweeping import sweep
from effects.workplace import Workplace
from tests import world
from tests.callers import OTHER, SECRET, body_about, calls_back, kept, takes_callbacks
from tests.effects.pens import claims_to, send
from tests.fakes import FakeHttp

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def effect() -> Effect:
    takes_callbacks(world.a_channel())
    return world.an_effect("unknown")


def test_what_was_signed_is_kept_byte_for_byte_and_settles_nothing_yet(effect: Effect) -> None:
    raw = json.dumps(body_about(effect, receipt=" r-7 ", reason="in the box", at="2026-03-01T10:00:00+01:00"), indent=3).encode()
    answer = calls_back(raw)
    assert (answer.status_code, answer.json()["again"]) == (202, False)
    one = Callback.objects.get()
    assert (bytes(one.raw), one.kind, one.receipt, one.reason) == (raw, "delivered", "r-7", "in the box")
    assert (one.event_id, one.effect, one.exact, one.outcome, one.applied_at) == ("ev-1", effect, True, "", None)
    assert one.said_at.isoformat() == "2026-03-01T09:00:00+00:00"
    effect.refresh_from_db()
    assert effect.state == "unknown"


def test_an_event_told_again_is_the_same_event(effect: Effect) -> None:
    body = body_about(effect)
    assert [calls_back(body).status_code for _ in range(3)] == [202, 200, 200]
    assert calls_back(body_about(effect, "bounced")).status_code == 409
    assert calls_back(body_about(effect, "bounced"), event="ev-2").status_code == 202
    assert sorted(Callback.objects.values_list("event_id", "kind")) == [("ev-1", "delivered"), ("ev-2", "bounced")]


def test_two_channels_may_use_one_event_id(effect: Effect) -> None:
    other = takes_callbacks(world.a_channel(slug="others"), OTHER)
    theirs = world.an_effect("unknown", target="else@example.com", channel=other)
    assert calls_back(body_about(effect)).status_code == 202
    assert calls_back(body_about(theirs), secret=OTHER, to="acme/others").status_code == 202


def test_twenty_at_once_keep_one(effect: Effect) -> None:
    body, statuses, together = body_about(effect), [], threading.Barrier(20)

    def knock() -> None:
        together.wait()
        statuses.append(calls_back(body).status_code)
        connection.close()

    threads = [threading.Thread(target=knock) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 19 + [202]
    assert Callback.objects.count() == 1


def refusals(effect: Effect) -> list[Any]:
    """Every way of not being let in, but for the clock."""
    body = body_about(effect)
    world.a_channel(slug="deaf")
    takes_callbacks(world.a_channel(world.a_workspace("globex"), slug="theirs"), OTHER)
    unreadable = world.a_channel(slug="unreadable")
    Channel.objects.filter(pk=unreadable.pk).update(secrets="sealed with a key that is gone")
    return [
        calls_back(body, secret=OTHER),
        calls_back(body, signature=""),
        calls_back(body, signature="v1,AAAA"),
        calls_back(body, sent=json.dumps(body).encode() + b" "),
        calls_back(body, to="acme/deaf"),
        calls_back(body, to="acme/unreadable"),
        calls_back(body, to="acme/nothing"),
        calls_back(body, to="nobody/letters"),
        calls_back(body, to="globex/theirs"),
        calls_back(body, to="globex/letters"),
        calls_back(b"not json", secret=OTHER),
    ]


def test_a_stranger_learns_nothing(effect: Effect) -> None:
    answers = refusals(effect)
    assert {(answer.status_code, answer.content, answer["Content-Type"]) for answer in answers} == {
        (401, answers[0].content, "application/problem+json")
    }
    assert answers[0].json()["code"] == "unauthorized"
    assert not Callback.objects.exists()


def test_a_channel_without_a_secret_takes_nothing_however_signed(effect: Effect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("effects.views.callback.NOBODY", bytes(32))  # as if somebody knew it
    world.a_channel(slug="deaf")
    for to in ("acme/deaf", "acme/nothing"):
        answer = calls_back(body_about(effect), secret="whsec_" + base64.b64encode(bytes(32)).decode(), to=to)
        assert answer.status_code == 401


@pytest.mark.parametrize("ago", [301, -302, 86_400])
def test_an_old_or_future_stamp_is_refused_however_well_signed(effect: Effect, ago: float) -> None:
    for to in ("acme/letters", "acme/nothing"):
        answer = calls_back(body_about(effect), ago=ago, to=to)
        assert (answer.status_code, "five minutes" in answer.json()["detail"]) == (401, True)
    assert not Callback.objects.exists()


def test_a_channel_that_changes_its_secret_takes_both_for_a_while(effect: Effect) -> None:
    takes_callbacks(effect.channel, f"{OTHER} {SECRET}")
    assert calls_back(body_about(effect), secret=SECRET).status_code == 202
    assert calls_back(body_about(effect), secret=OTHER, event="ev-2").status_code == 202
    takes_callbacks(effect.channel, OTHER)
    assert calls_back(body_about(effect), secret=SECRET, event="ev-3").status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"not json", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b"\xff\xfe", "body"),
        (b"[" * 60_000, "body"),
        ({"type": "opened"}, "type"),
        ({"type": None}, "type"),
        ({"key": 7}, "key"),
        ({"key": "a\0b"}, "key"),
        ({"key": "k" * 81}, "key"),
        ({"epoch": True}, "epoch"),
        ({"epoch": "0"}, "epoch"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": 2**31}, "epoch"),
        ({"attempt": 0}, "attempt"),
        ({"attempt": 1.0}, "attempt"),
        ({"receipt": 17}, "receipt"),
        ({"receipt": "r" * 2001}, "receipt"),
        ({"reason": "a\0b"}, "reason"),
        ({"at": "yesterday"}, "at"),
        ({"at": 1614265330}, "at"),
        ({"at": "2026-03-01T10:00:00"}, "at"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "at"),
        ({"state": "done"}, "state"),
    ],
)
def test_a_malformed_body_is_told_by_field_and_not_kept(effect: Effect, body: Any, field: str) -> None:
    answer = calls_back(body if isinstance(body, bytes) else body_about(effect) | body)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert not Callback.objects.exists()


@pytest.mark.parametrize("event", ["", "with blank", "x" * 201, "ünsinn"])
def test_an_event_needs_a_name(effect: Effect, event: str) -> None:
    answer = calls_back(body_about(effect), event=event)
    assert answer.status_code in (400, 401)  # what a header cannot carry was never signed
    assert not Callback.objects.exists()


def test_a_large_body_is_not_read(effect: Effect) -> None:
    assert calls_back(b" " * (64 * 1024 - 1) + b"x").status_code == 400
    for to in ("acme/letters", "acme/nothing"):
        assert calls_back(b" " * (64 * 1024 + 1), to=to).status_code == 413


def test_other_methods_are_told_so(client: Client) -> None:
    for method in (client.get, client.put, client.delete):
        answer = method("/callbacks/acme/letters/")
        assert (answer.status_code, answer["Allow"], answer["Content-Type"]) == (405, "POST", "application/problem+json")


def test_effects_of_others_are_not_meant(effect: Effect) -> None:
    """Also when the other channel is in the same workspace; nothing is kept of it."""
    other = world.an_effect("unknown", target="else@example.com", channel=world.a_channel(slug="others"))
    theirs = world.an_effect("unknown", target="x@example.com", channel=world.a_channel(world.a_workspace("globex")))
    bodies = [
        body_about(other), body_about(theirs), body_about(effect, epoch=1), body_about(effect, attempt=2), body_about(effect, key="v1:0"),
    ]  # fmt: skip
    answers = [calls_back(body) for body in bodies]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(404, "not_found")}
    assert not Callback.objects.exists()


def test_without_an_attempt_the_newest_is_meant_and_that_is_not_exact(effect: Effect) -> None:
    first = world.an_effect("failed", target="twice@example.com")
    second = world.an_effect("unknown", target="twice@example.com")
    body = {name: value for name, value in body_about(second).items() if name != "attempt"}
    assert calls_back(body).status_code == 202
    assert calls_back(body | {"attempt": 1}, event="ev-2").status_code == 202
    assert calls_back({"type": "delivered", "key": effect.key}, event="ev-3").status_code == 202
    found = Callback.objects.order_by("id").values_list("effect_id", "exact")
    assert list(found) == [(second.pk, False), (first.pk, True), (effect.pk, True)]


def test_one_effect_takes_so_many_and_no_more(effect: Effect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "MOST", 2)
    statuses = [calls_back(body_about(effect), event=f"ev-{n}").status_code for n in (1, 2, 3, 1)]
    assert statuses == [202, 202, 409, 200]


def test_the_secret_never_goes_out_with_a_call(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        channel = takes_callbacks(world.a_channel(settings=provider.settings | {"timeout": 1.0}))
        send(workplace, channel, claims_to("ada"))
        [headers] = provider.headers
    assert not [name for name in headers if "callback" in name]
    assert "whsec" not in str(headers)


def test_a_callback_that_comes_in_settles_at_the_next_sweep(effect: Effect, workplace: Workplace) -> None:
    assert calls_back(body_about(effect, receipt="r-9")).status_code == 202
    assert workplace.run(sweep(workplace)) == 1
    effect.refresh_from_db()
    assert (effect.state, effect.receipt, effect.ruled) == ("done", "r-9", False)


@pytest.mark.parametrize(
    "change",
    ["event_id = 'other'", "raw = ''", "kind = 'bounced'", "receipt = 'x'", "received_at = now()", "effect_id = effect_id + 1"],
)
def test_what_was_received_never_changes(effect: Effect, change: str) -> None:
    kept(effect, "delivered")
    with connection.cursor() as cursor:
        with pytest.raises(IntegrityError, match="stays as it was received"):
            cursor.execute(f"UPDATE effects_callback SET {change}")
        with pytest.raises(IntegrityError, match="never deleted"):
            cursor.execute("DELETE FROM effects_callback")
