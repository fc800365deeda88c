"""The sweeper speaks for rows whose worker no longer can; it asks, reads again, and never sends."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from effects import ledger
from effects.models import Channel, Effect, KeptReply, LookUp
from effects.sweeping import sweep
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import claims_to, reserve, send
from tests.fakes import FakeHttp, accepts_then_dies, answers

pytestmark = pytest.mark.django_db(transaction=True)


def a_channel_to(provider: FakeHttp, **settings: object) -> Channel:
    return world.a_channel(settings=provider.settings | {"timeout": 1.0, "settle_window": 0.0} | settings)


def abandoned(place: Workplace, channel: Channel, *names: str) -> list[Effect]:
    """Rows of a worker that died after it reserved them."""
    won = reserve(place, channel, claims_to(*names), deadline=0.001)
    return list(Effect.objects.filter(pk__in=[row.id for row in won]).order_by("id"))


def swept(place: Workplace) -> int:
    return place.run(sweep(place))


def ask_at_once(effect: Effect) -> None:
    """As if the time until the next look-up had passed."""
    Effect.objects.filter(pk=effect.pk).update(look_up_at=timezone.now() - timedelta(seconds=1))


def test_a_row_in_time_is_left_alone(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        reserve(workplace, a_channel_to(provider), claims_to("ada"), deadline=60)
        assert swept(workplace) == 0
        assert provider.look_ups == 0


def test_what_arrived_before_the_crash_is_found_and_done(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        [effect] = abandoned(workplace, a_channel_to(provider), "ada")
        provider.filed[f"{effect.key}:0"] = "r-77"
        swept(workplace)
        assert not provider.calls
    effect.refresh_from_db()
    assert (effect.state, effect.receipt, effect.reason) == ("done", "r-77", "found by look-up")
    assert LookUp.objects.get(effect=effect).answer == "found"


def test_a_kept_reply_is_read_again_without_asking_anybody(workplace: Workplace) -> None:
    """A worker that dies between keeping and settling costs nothing."""
    with FakeHttp() as provider:
        [done, refused] = abandoned(workplace, a_channel_to(provider), "ada", "bo")
        for effect, raw in ((done, b'HTTP/1.1 200 OK\r\n\r\n{"id": "r-1"}'), (refused, b"HTTP/1.1 422 No\r\n\r\n{}")):
            KeptReply.objects.create(effect=effect, kind="answered", raw=raw)
        swept(workplace)
        assert provider.look_ups == 0
    done.refresh_from_db()
    refused.refresh_from_db()
    assert (done.state, done.receipt) == ("done", "r-1")
    assert refused.state == "failed"
    assert done.settled_by.startswith("sweeper")


def test_a_miss_inside_the_settle_window_proves_nothing(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        [effect] = abandoned(workplace, a_channel_to(provider, settle_window=600.0), "ada")
        swept(workplace)
        effect.refresh_from_db()
        assert (effect.state, provider.look_ups) == ("pending", 1)
        assert swept(workplace) == 0, "the next look-up is not due yet"
        ask_at_once(effect)
        provider.filed[f"{effect.key}:0"] = "late"
        swept(workplace)
    effect.refresh_from_db()
    assert (effect.state, effect.receipt) == ("done", "late")
    assert list(effect.look_ups.order_by("id").values_list("answer", flat=True)) == ["absent", "found"]


def test_after_the_window_it_is_unknown_and_never_sent_again(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        channel = a_channel_to(provider)
        [effect] = abandoned(workplace, channel, "ada")
        swept(workplace)
        effect.refresh_from_db()
        assert effect.state == "unknown"
        assert "did not find it" in effect.reason
        assert send(workplace, channel, claims_to("ada")) == 0
        assert not provider.calls


def test_a_provider_that_cannot_be_asked_leaves_it_to_a_person_at_once(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        [effect] = abandoned(workplace, a_channel_to(provider, lookup_url=""), "ada")
        swept(workplace)
        assert provider.look_ups == 0
    effect.refresh_from_db()
    assert (effect.state, effect.look_up_at) == ("unknown", None)


def test_a_lost_call_is_looked_up_through_the_window_and_settles_itself(workplace: Workplace) -> None:
    with FakeHttp(otherwise=accepts_then_dies()) as provider:
        channel = a_channel_to(provider, settle_window=600.0)
        send(workplace, channel, claims_to("ada"))
        assert Effect.objects.get().state == "unknown"
        swept(workplace)
        assert provider.calls["ada@example.com"] == 1
    assert Effect.objects.get().state == "done"


def test_look_ups_of_an_unknown_row_end_with_the_window(workplace: Workplace) -> None:
    with FakeHttp(otherwise=answers(500)) as provider:
        channel = a_channel_to(provider)
        send(workplace, channel, claims_to("ada"))
        swept(workplace)
        assert swept(workplace) == 0
        assert provider.look_ups == 1
    effect = Effect.objects.get()
    assert (effect.state, effect.look_up_at) == ("unknown", None)


@pytest.mark.parametrize(
    "answer", [answers(500), answers(200, b"not json"), answers(200, b"{}")], ids=["500", "garbage", "no receipt"]
)
def test_a_look_up_that_says_nothing_clear_is_no_proof(
    workplace: Workplace, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeHttp() as provider:
        monkeypatch.setattr(provider, "_found", lambda path: answer)
        [effect] = abandoned(workplace, a_channel_to(provider, settle_window=600.0), "ada")
        swept(workplace)
    effect.refresh_from_db()
    assert effect.state == "pending"


def test_a_worker_that_wakes_after_the_sweeper_changes_nothing(workplace: Workplace) -> None:
    from effects.verdicts import done

    with FakeHttp() as provider:
        [effect] = abandoned(workplace, a_channel_to(provider), "ada")
        swept(workplace)

        async def wake() -> None:
            async with workplace.pens() as pen:
                await ledger.keep_and_settle(
                    await pen("recording"), replies=[], verdicts=[(effect.pk, done("late"))], by="late",
                    max_attempts=3, can_look_up=False,
                )  # fmt: skip

        workplace.run(wake())
    effect.refresh_from_db()
    assert (effect.state, effect.receipt) == ("unknown", "")


def test_it_looks_at_a_bounded_number_of_rows_at_once(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        abandoned(workplace, a_channel_to(provider), *(f"p{n}" for n in range(30)))
        assert workplace.run(sweep(workplace, most=20)) == 20
        assert workplace.run(sweep(workplace, most=20)) == 10


def test_a_channel_is_swept_by_one_sweeper_at_a_time(workplace: Workplace) -> None:
    async def while_another_is_at_it() -> int:
        async with workplace.pens() as pen:
            assert await ledger.take_sweep(await pen("sweeping"), channel.pk, seconds=30)
            try:
                return await sweep(workplace)
            finally:
                await ledger.leave_sweep(await pen("sweeping"), channel.pk)

    with FakeHttp() as provider:
        channel = a_channel_to(provider)
        abandoned(workplace, channel, "ada")
        assert workplace.run(while_another_is_at_it()) == 0
        assert provider.look_ups == 0
        assert swept(workplace) == 1
        assert provider.look_ups == 1


def test_a_sweeper_that_stopped_is_not_waited_for(workplace: Workplace) -> None:
    async def stop_in_the_middle() -> None:
        async with workplace.pens() as pen:
            assert await ledger.take_sweep(await pen("sweeping"), channel.pk, seconds=0.2)

    with FakeHttp() as provider:
        channel = a_channel_to(provider)
        abandoned(workplace, channel, "ada")
        workplace.run(stop_in_the_middle())
        assert swept(workplace) == 0
        time.sleep(0.25)
        assert swept(workplace) == 1


def test_one_channels_trouble_is_nobody_elses(workplace: Workplace) -> None:
    """A channel whose secrets no key opens any more must not keep the others from being swept."""
    with FakeHttp() as provider:
        broken = world.a_channel(slug="broken", settings=provider.settings | {"timeout": 1.0})
        reserve(workplace, broken, claims_to("ada"), deadline=0.001)
        Channel.objects.filter(pk=broken.pk).update(secrets="not a sealed text")
        [effect] = abandoned(workplace, a_channel_to(provider), "bo")
        provider.filed[f"{effect.key}:0"] = "r-1"
        swept(workplace)
        swept(workplace)
    effect.refresh_from_db()
    assert effect.state == "done"
    assert Effect.objects.get(channel=broken).state == "pending"


def test_a_reply_kept_while_the_sweeper_asked_is_not_overruled(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHttp() as provider:
        [effect] = abandoned(workplace, a_channel_to(provider), "ada")

        def keeps_meanwhile(path: str) -> object:
            from tests.effects.pens import outside

            outside(
                "INSERT INTO effects_keptreply (effect_id, kind, raw, note) VALUES (%s, 'answered', %s, '') RETURNING effect_id",
                effect.pk,
                b'HTTP/1.1 200 OK\r\n\r\n{"id": "r-9"}',
            )
            return answers(404)

        monkeypatch.setattr(provider, "_found", keeps_meanwhile)
        swept(workplace)
        Effect.objects.filter(pk=effect.pk).update(look_up_at=None)
        swept(workplace)
    effect.refresh_from_db()
    assert (effect.state, effect.receipt) == ("done", "r-9")


def test_a_look_up_that_cannot_tell_epochs_apart_proves_nothing_of_a_later_one(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        settings = provider.settings | {"lookup_url": f"http://127.0.0.1:{provider.port}/look?key={{key}}&epoch=0"}
        channel = world.a_channel(settings=settings | {"timeout": 1.0})
        http = workplace.run(workplace.provider(channel))
        provider.filed["k:0"] = "r-0"
        assert workplace.run(http.look_up("k", 0)).receipt == "r-0"
        assert workplace.run(http.look_up("k", 1)).answer == "inconclusive"
