"""What each reply of a provider becomes: one state, its bytes as they came, another attempt or none, and perhaps a rest."""

import pytest

from effects import ledger
from effects.channels import open_provider
from effects.models import Channel, Effect, KeptReply, Pause
from effects.reading import verdict_of
from effects.verdicts import LONGEST_WAIT, Reply, ReplyKind
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import claims_to, send, state_of
from tests.fakes import (
    Behaviour,
    FakeHttp,
    accepts,
    accepts_and_cuts_its_answer,
    accepts_then_dies,
    accepts_then_hangs,
    accepts_without_receipt,
    answers,
    dies,
    says_garbage,
)

pytestmark = pytest.mark.django_db(transaction=True)

# provider's behaviour -> (state, how many were really delivered, may a machine try again)
TABLE = {
    "accepted": (accepts(), "done", 1, False),
    "accepted, 201": (accepts(201), "done", 1, False),
    "accepted, no receipt": (accepts_without_receipt(), "unknown", 1, False),
    "accepted, answer cut": (accepts_and_cuts_its_answer(), "unknown", 1, False),
    "accepted, then dead": (accepts_then_dies(), "unknown", 1, False),
    "not accepted, dead": (dies(), "unknown", 0, False),
    "accepted, then silent": (accepts_then_hangs(), "unknown", 1, False),
    "accepted, garbage": (says_garbage(), "unknown", 1, False),
    "accepted, 500": (answers(500, accepted=True), "unknown", 1, False),
    "not accepted, 500": (answers(500), "unknown", 0, False),
    "not accepted, 503": (answers(503), "unknown", 0, False),
    "accepted, 302": (answers(302, accepted=True, headers="Location: /elsewhere\r\n"), "unknown", 1, False),
    "conflict": (answers(409), "unknown", 0, False),
    "accepted for later": (answers(202, accepted=True), "unknown", 1, False),
    "bad request": (answers(400), "failed", 0, False),
    "gone": (answers(404), "failed", 0, False),
    "unprocessable": (answers(422), "failed", 0, False),
    "too many": (answers(429, headers="Retry-After: 7\r\n"), "failed", 0, True),
    "true is no receipt": (answers(200, b'{"id": true}', accepted=True), "unknown", 1, False),
    "an empty receipt is none": (answers(200, b'{"id": ""}', accepted=True), "unknown", 1, False),
    "not JSON": (answers(200, b"<html>ok</html>", accepted=True), "unknown", 1, False),
}


def a_channel_to(provider: FakeHttp, **settings: object) -> Channel:
    typed = {"timeout": 1.0, "settle_window": 0.0} | settings
    return world.a_channel(settings=provider.settings | typed)


@pytest.mark.parametrize("name", TABLE)
def test_each_reply_means_one_state(workplace: Workplace, name: str) -> None:
    behaviour, state, delivered, transient = TABLE[name]
    with FakeHttp(otherwise=behaviour) as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
        effect = Effect.objects.get()
        assert (effect.state, provider.deliveries["ada@example.com"]) == (state, delivered)
        assert provider.calls["ada@example.com"] == 1, "client retries are off"
        assert (effect.retry_at is not None) == transient
        assert bool(effect.receipt) == (state == "done")
        assert effect.reason


def test_nothing_that_listens_means_that_nothing_was_sent(workplace: Workplace) -> None:
    channel = world.a_channel(settings={"url": "http://127.0.0.1:1/send", "timeout": 1.0})
    send(workplace, channel, claims_to("ada"))
    effect = Effect.objects.get()
    assert (effect.state, effect.reply.kind) == ("failed", "not sent")
    assert effect.retry_at is not None


def test_the_raw_reply_is_kept_byte_for_byte(workplace: Workplace) -> None:
    with FakeHttp(otherwise=answers(200, b'{"id": "x-1",  "odd": "\xc3\xa9"}', accepted=True)) as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
    raw = bytes(Effect.objects.get().reply.raw)
    assert raw.startswith(b"HTTP/1.1 200 Said So\r\n")
    assert raw.endswith(b'{"id": "x-1",  "odd": "\xc3\xa9"}')


def test_what_arrived_of_a_cut_reply_is_kept(workplace: Workplace) -> None:
    with FakeHttp(otherwise=accepts_and_cuts_its_answer()) as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
    effect = Effect.objects.get()
    assert effect.reply.kind == "lost"
    assert bytes(effect.reply.raw).endswith(b'{"id": "REC')


@pytest.mark.parametrize(
    ("behaviour", "until_lifted"),
    [(answers(429, headers="Retry-After: 60\r\n"), False), (answers(401), True), (answers(403), True)],
)
def test_a_provider_that_asks_for_rest_pauses_this_channel(
    workplace: Workplace, behaviour: Behaviour, until_lifted: bool
) -> None:
    with FakeHttp(otherwise=behaviour) as provider:
        channel = a_channel_to(provider)
        send(workplace, channel, claims_to("ada", "bo"))
    pause = Pause.objects.get()  # one, not one for each row
    assert pause.subject == f"channel:{channel.pk}"
    assert (pause.until is None) == until_lifted
    if pause.until:
        assert 55 < (pause.until - pause.started_at).total_seconds() < 65


def test_attempts_are_bounded(workplace: Workplace) -> None:
    with FakeHttp(otherwise=answers(429)) as provider:
        channel = a_channel_to(provider)
        for _ in range(3):
            send(workplace, channel, claims_to("ada"))
    attempts = list(Effect.objects.order_by("attempt"))
    assert [effect.attempt for effect in attempts] == [1, 2, 3]
    assert [effect.retry_at is not None for effect in attempts] == [True, True, False]


def test_kinds_of_replies_fit_their_column() -> None:
    width = KeptReply._meta.get_field("kind").max_length or 0
    assert all(len(kind) <= width for kind in ReplyKind)


@pytest.mark.parametrize("receipt", ["a\\u0000b", "\\ud800"], ids=["NUL", "half a character"])
def test_a_receipt_that_cannot_be_kept_is_unknown_and_spares_the_neighbours(workplace: Workplace, receipt: str) -> None:
    with FakeHttp() as provider:
        provider.behaviours["ada@example.com"] = answers(200, f'{{"id": "{receipt}"}}'.encode(), accepted=True)
        send(workplace, a_channel_to(provider), claims_to("ada", "bo", "cy"))
    assert state_of("ada@example.com") == "unknown"
    assert Effect.objects.filter(state="done").count() == 2


def test_a_reason_phrase_in_another_encoding_does_not_lose_the_reply(workplace: Workplace) -> None:
    reply = b'HTTP/1.1 200 D\xe9j\xe0 vu\r\nContent-Length: 13\r\n\r\n{"id": "r-1"}'
    with FakeHttp(otherwise=Behaviour(True, reply)) as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
    assert state_of("ada@example.com") == "done"


def test_a_longer_rest_outlasts_a_shorter_one(workplace: Workplace) -> None:
    channel = world.a_channel()

    async def rest(seconds: float | None) -> None:
        async with workplace.pens() as pen:
            await ledger.rest(
                await pen("recording"),
                workspace_id=channel.workspace_id,
                channel_id=channel.pk,
                seconds=seconds,
                reason="r",
                by="w",
            )

    for seconds in (5.0, 1.0, 3600.0, 60.0, None, 3600.0):
        workplace.run(rest(seconds))
    assert Pause.objects.count() == 3


def test_what_never_left_this_machine_uses_up_no_attempt(workplace: Workplace) -> None:
    channel = world.a_channel(settings={"url": "http://127.0.0.1:1/send", "timeout": 1.0})
    for _ in range(5):
        send(workplace, channel, claims_to("ada"))
    waits = [
        round((effect.retry_at - effect.settled_at).total_seconds())
        for effect in Effect.objects.order_by("attempt")
        if effect.retry_at
    ]
    assert waits == [10, 20, 40, 80, 160]


def test_attempts_that_never_left_leave_all_that_are_allowed(workplace: Workplace) -> None:
    """After five that found nobody there, the first refusal that may pass is followed by a second try and a third."""
    with FakeHttp(otherwise=answers(429)) as provider:
        channel = a_channel_to(provider, max_attempts=3)
        Channel.objects.update(settings=channel.settings | {"url": "http://127.0.0.1:1/send"})
        for _ in range(5):
            send(workplace, Channel.objects.get(), claims_to("ada"))
        Channel.objects.update(settings=channel.settings)
        for _ in range(3):
            send(workplace, Channel.objects.get(), claims_to("ada"))
        assert provider.calls == {"ada@example.com": 3}
    told = list(Effect.objects.order_by("attempt").values_list("kept_reply__kind", "retry_at"))
    assert [kind for kind, _ in told] == ["not sent"] * 5 + ["answered"] * 3
    assert [at is not None for _, at in told] == [True] * 7 + [False]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ("Retry-After: 7", 7.0),
        ("Retry-After: 0", 0.0),
        ("", None),
        ("Retry-After: -5", None),
        ("Retry-After: 1.5", None),
        ("Retry-After: in a while", None),
        ("Retry-After: \u0661".encode().decode("latin-1"), None),
        ("Retry-After: 99999999999999999999", LONGEST_WAIT),
        ("Date: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 12:02:00 GMT", 120.0),
        ("Date: Mon, 30 Nov 2026 12:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("Date: yesterday\r\nRetry-After: Mon, 01 Jan 2024 00:00:00 GMT", 0.0),
        ("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
    ],
)
def test_retry_after_in_every_way_it_is_written(headers: str, seconds: float | None) -> None:
    """Odd ones are as if they were not there; a date means the same however late it is read; none is longer than an hour."""
    channel = Channel(provider="http", settings={"url": "http://127.0.0.1:9/"}, secrets="")
    raw = f"HTTP/1.1 429 Later\r\n{headers}{chr(13) + chr(10) if headers else ''}Content-Length: 0\r\n\r\n".encode("latin-1")
    verdict = verdict_of(Reply(ReplyKind.ANSWERED, raw), open_provider(channel))
    assert verdict.pauses
    assert (None if verdict.retry_after is None else min(verdict.retry_after, LONGEST_WAIT)) == seconds
