"""Reserve, call, keep, read, settle: what each reply of a provider becomes, and what is on disk when."""

from collections.abc import Sequence

import pytest

from effects import ledger
from effects.content import Content
from effects.ledger import Claim
from effects.models import Channel, Effect, Event, KeptReply, Pause
from effects.sweeping import sweep
from effects.verdicts import Reply, ReplyKind
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import a_claim, claims_to, outside, send, state_of
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


def how_many(state: str) -> int:
    [(count,)] = outside("SELECT count(*) FROM effects_effect WHERE state = %s", state)
    return int(count)


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


def test_the_request_carries_the_identity_and_the_frozen_content(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        send(workplace, a_channel_to(provider), [a_claim("ada@example.com", text="Grüße, 春")])
        [body], [headers] = provider.bodies, provider.headers
    effect = Effect.objects.get()
    assert headers["idempotency-key"] == f"{effect.key}:0"
    assert body["text"] == "Grüße, 春"
    assert body["metadata"] == {"key": effect.key, "epoch": 0, "attempt": 1}


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


def test_pending_is_on_disk_before_the_provider_hears_of_it(workplace: Workplace) -> None:
    """I9: at the moment the provider has the request, another connection sees the reservation."""
    seen: list[str] = []

    def look(body: dict[str, object]) -> None:
        seen.extend(state for (state,) in outside("SELECT state FROM effects_effect WHERE target = %s", body["to"]))

    with FakeHttp() as provider:
        provider.before_answer = look
        send(workplace, a_channel_to(provider), claims_to("ada", "bo", "cy"))
    assert seen == ["pending"] * 3


def test_the_raw_reply_is_on_disk_before_it_is_read(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5, I10: reading happens to kept replies only."""
    from effects import sending

    kept: list[tuple[str, bool]] = []
    read = sending.verdict_of

    def read_after_looking(reply: Reply, provider: object) -> object:
        kept.extend(
            outside("SELECT state, raw = %s FROM effects_effect e JOIN effects_keptreply k ON k.effect_id = e.id", reply.raw)
        )
        return read(reply, provider)  # type: ignore[arg-type]

    monkeypatch.setattr(sending, "verdict_of", read_after_looking)
    with FakeHttp(otherwise=answers(200, b'{"id": "only"}', accepted=True)) as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
    assert kept == [("pending", True)]
    assert state_of("ada@example.com") == "done"


def test_changed_content_is_stopped_before_the_socket(workplace: Workplace) -> None:
    """BR-17: what was approved is what goes out; a row changed since does not."""
    honest = a_claim("ada@example.com")
    forged = Claim(honest.key, 0, Content("ada@example.com", "Good news", "Send me your password"), honest.content_digest)
    with FakeHttp() as provider:
        send(workplace, a_channel_to(provider), [forged, a_claim("bo@example.com")])
        assert provider.calls == {"bo@example.com": 1}
    effect = Effect.objects.get(target="ada@example.com")
    assert (effect.state, effect.reply.kind, effect.retry_at) == ("failed", "withheld", None)
    assert "not what was approved" in effect.reason


def test_a_claim_that_waited_too_long_is_not_sent(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "START_WITHIN", -1.0)
    with FakeHttp() as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
        assert not provider.calls
    effect = Effect.objects.get()
    assert (effect.state, effect.reply.kind) == ("failed", "not sent")
    assert effect.retry_at is not None


def test_a_fault_of_our_own_in_the_call_is_unknown_and_spares_the_neighbours(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from effects.providers.http import Http

    real = Http.send

    async def stumbles(self: Http, delivery: object) -> Reply:
        if delivery.content.to.startswith("ada"):  # type: ignore[attr-defined]
            raise KeyError("a bug")
        return await real(self, delivery)  # type: ignore[arg-type]

    monkeypatch.setattr(Http, "send", stumbles)
    with FakeHttp() as provider:
        send(workplace, a_channel_to(provider), claims_to("ada", "bo"))
    assert (state_of("ada@example.com"), state_of("bo@example.com")) == ("unknown", "done")


def test_a_slow_neighbour_holds_nobody_up(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["slow@example.com"] = accepts_then_hangs()
        settled_while_slow: list[int] = []
        provider.before_answer = lambda body: settled_while_slow.append(how_many("done"))
        send(workplace, a_channel_to(provider), claims_to("slow", *(f"p{n}" for n in range(30))), window=4)
    assert state_of("slow@example.com") == "unknown"
    assert Effect.objects.filter(state="done").count() == 30
    assert max(settled_while_slow) > 10


@pytest.mark.parametrize("window", [1, 2, 7, 64])
def test_never_more_than_a_window_is_reserved_and_unsettled(workplace: Workplace, window: int) -> None:
    high_water: list[int] = []
    with FakeHttp() as provider:
        provider.before_answer = lambda body: high_water.append(how_many("pending"))
        sent = send(workplace, a_channel_to(provider, timeout=20.0), claims_to(*(f"p{n}" for n in range(60))), window=window)
        assert sum(provider.deliveries.values()) == sent == 60
    assert max(high_water) <= window
    assert set(Effect.objects.values_list("state", flat=True)) == {"done"}


def test_br_09_no_client_of_ours_tries_again_by_itself(workplace: Workplace) -> None:
    """The provider files it, answers 503 to three calls for this target and 200 to a fourth: it hears of one."""
    with FakeHttp(otherwise=answers(503, accepted=True, headers="Retry-After: 0\r\n")) as provider:

        def relents(body: object) -> None:
            if provider.calls["ada@example.com"] == 3:
                provider.otherwise = accepts()

        provider.before_answer = relents
        channel = a_channel_to(provider, lookup_url="")
        send(workplace, channel, claims_to("ada"))
        send(workplace, channel, claims_to("ada"))
        workplace.run(sweep(workplace))
        assert provider.calls == {"ada@example.com": 1}
    effect = Effect.objects.get()
    assert (effect.state, effect.retry_at) == ("unknown", None)


def test_sending_the_same_rows_again_sends_nothing(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        channel, claims = a_channel_to(provider), claims_to("ada", "bo", "cy")
        assert send(workplace, channel, claims) == 3
        assert send(workplace, channel, claims) == 0
        assert set(provider.deliveries.values()) == {1}


def test_every_settled_row_left_one_event(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["bo@example.com"] = answers(400)
        send(workplace, a_channel_to(provider), claims_to("ada", "bo"))
    arrows = sorted(Event.objects.values_list("effect__target", "before", "after"))
    assert arrows == [("ada@example.com", "pending", "done"), ("bo@example.com", "pending", "failed")]


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


def test_a_rate_spaces_calls_over_all_workers(workplace: Workplace) -> None:
    """Slots are rows of the database: four calls at 4 a second claim a second of the channel's time."""
    channel = world.a_channel()

    async def take() -> list[float | None]:
        async with workplace.pens() as pen:
            return [await ledger.take_slots(await pen("reserving"), channel.pk, n=4, rate=4.0, within=1.5) for _ in range(3)]

    first, second, third = workplace.run(take())
    assert first == 0
    assert second is not None
    assert 0.5 < second <= 1
    assert third is None, "a far slot is left to another turn"


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


def test_it_asks_for_answers_that_are_not_compressed(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
        assert provider.headers[0]["accept-encoding"] == "identity"


def test_replies_survive_a_database_that_goes_away_while_calls_are_out(workplace: Workplace) -> None:
    """The recording connection is cut after the reservation: what came back is written down over a new one."""
    with FakeHttp() as provider:
        cut: list[bool] = []

        def cut_once(body: object) -> None:
            if not cut:
                cut.append(True)
                outside("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'signoff recording'")

        provider.before_answer = cut_once
        send(workplace, a_channel_to(provider, timeout=20.0), claims_to("ada", "bo", "cy", "di"))
        assert cut
        assert set(provider.calls.values()) == {1}
    assert set(Effect.objects.values_list("state", flat=True)) == {"done"}


def test_calls_in_flight_are_written_down_when_the_source_breaks(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        channel = a_channel_to(provider)
        given: list[int] = []

        async def breaking(most: int) -> Sequence[Claim]:
            if given:
                raise RuntimeError("the source broke")
            given.append(1)
            return claims_to("ada", "bo")

        with pytest.raises(RuntimeError, match="the source broke"):
            send(workplace, channel, breaking)
    assert set(Effect.objects.values_list("state", flat=True)) == {"done"}


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
