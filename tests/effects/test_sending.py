"""Reserve, call, keep, read, settle: what each reply of a provider becomes, and what is on disk when."""

from collections.abc import Sequence

import pytest

from effects import ledger
from effects.content import Content
from effects.ledger import Claim
from effects.models import Channel, Effect, Event
from effects.sweeping import sweep
from effects.verdicts import Reply
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import a_claim, claims_to, outside, send, state_of
from tests.fakes import (
    FakeHttp,
    accepts,
    accepts_then_hangs,
    answers,
)

pytestmark = pytest.mark.django_db(transaction=True)


def a_channel_to(provider: FakeHttp, **settings: object) -> Channel:
    typed = {"timeout": 1.0, "settle_window": 0.0} | settings
    return world.a_channel(settings=provider.settings | typed)


def how_many(state: str) -> int:
    [(count,)] = outside("SELECT count(*) FROM effects_effect WHERE state = %s", state)
    return int(count)


def test_the_request_carries_the_identity_and_the_frozen_content(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        send(workplace, a_channel_to(provider), [a_claim("ada@example.com", text="Grüße, 春")])
        [body], [headers] = provider.bodies, provider.headers
    effect = Effect.objects.get()
    assert headers["idempotency-key"] == f"{effect.key}:0"
    assert body["text"] == "Grüße, 春"
    assert body["metadata"] == {"key": effect.key, "epoch": 0, "attempt": 1}


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
