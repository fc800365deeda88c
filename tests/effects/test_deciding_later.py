"""A provider that says 202 decides later: the row stays pending, is looked up, and then is done, failed or unknown. Never sent again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from effects.channels import open_provider
from effects.models import Channel, Effect, LookUp
from effects.providers import BadSettings
from effects.sweeping import sweep
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import claims_to, send
from tests.fakes import FakeHttp, answers

pytestmark = pytest.mark.django_db(transaction=True)

TAKEN = answers(202, b'{"operation_id": "op-1", "status": "queued"}', accepted=True)


def a_channel_to(provider: FakeHttp, **settings: object) -> Channel:
    return world.a_channel(settings=provider.settings | {"timeout": 1.0, "settle_window": 60.0} | settings)


def ask_at_once() -> None:
    Effect.objects.update(look_up_at=timezone.now() - timedelta(seconds=1))


def after(workplace: Workplace, provider: FakeHttp, said: bytes, **settings: object) -> Effect:
    """The effect after a 202 and one look at its operation."""
    provider.behaviours["ada@example.com"] = TAKEN
    send(workplace, a_channel_to(provider, **settings), claims_to("ada"))
    effect = Effect.objects.get()
    assert (effect.state, effect.reason) == ("pending", "HTTP 202: operation op-1, decided later")
    provider.operations["op-1"] = said
    ask_at_once()
    assert workplace.run(sweep(workplace)) == 1
    effect.refresh_from_db()
    return effect


@pytest.mark.parametrize(
    ("said", "state", "answer"),
    [
        (b'{"status": "succeeded", "id": "m-7"}', "done", "found"),
        (b'{"status": "Completed", "id": 7}', "done", "found"),
        (b'{"status": "failed", "id": "m-7"}', "failed", "refused"),
        (b'{"status": "running"}', "pending", "inconclusive"),
        (b'{"status": "succeeded"}', "pending", "inconclusive"),
        (b'{"id": "m-7"}', "pending", "inconclusive"),
        (b'{"status": true, "id": "m-7"}', "pending", "inconclusive"),
        (b"not json", "pending", "inconclusive"),
    ],
)
def test_what_the_operation_says_is_what_it_becomes(workplace: Workplace, said: bytes, state: str, answer: str) -> None:
    with FakeHttp() as provider:
        effect = after(workplace, provider, said)
        assert provider.calls == {"ada@example.com": 1}
    assert effect.state == state
    assert LookUp.objects.get().answer == answer
    assert (effect.look_up_at is None) == (state != "pending")
    assert effect.retry_at is None


def test_it_is_asked_again_until_it_has_decided(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        effect = after(workplace, provider, b'{"status": "running"}')
        provider.operations["op-1"] = b'{"status": "succeeded", "id": "m-7"}'
        ask_at_once()
        workplace.run(sweep(workplace))
        effect.refresh_from_db()
    assert (effect.state, effect.receipt) == ("done", "m-7")


def test_one_that_never_decides_goes_to_a_person(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["ada@example.com"] = TAKEN
        send(workplace, a_channel_to(provider, settle_window=0.0), claims_to("ada"), deadline=0.001)
        ask_at_once()
        workplace.run(sweep(workplace))
    effect = Effect.objects.get()
    assert (effect.state, effect.reason) == ("unknown", "it was accepted, and never decided")


def test_a_worker_that_died_before_it_read_a_202_changes_nothing(workplace: Workplace) -> None:
    """The sweeper reads the kept reply, as the worker would have, and asks."""
    with FakeHttp() as provider:
        after(workplace, provider, b'{"status": "running"}')
        Effect.objects.update(look_up_at=None)
        provider.operations["op-1"] = b'{"status": "failed"}'
        assert workplace.run(sweep(workplace)) == 0, "its deadline has not passed"
        ask_at_once()
        workplace.run(sweep(workplace))
        assert Effect.objects.get().state == "failed"


@pytest.mark.parametrize("body", [b"{}", b'{"operation_id": ""}', b'{"operation_id": null}', b"accepted"])
def test_a_202_that_names_no_operation_is_unknown(workplace: Workplace, body: bytes) -> None:
    with FakeHttp() as provider:
        provider.behaviours["ada@example.com"] = answers(202, body, accepted=True)
        send(workplace, a_channel_to(provider), claims_to("ada"))
    assert Effect.objects.get().state == "unknown"


def test_an_operation_url_without_its_place_is_refused() -> None:
    channel = Channel(
        provider="http", settings={"url": "http://127.0.0.1:9/", "operation_url": "http://127.0.0.1:9/op"}, secrets=""
    )
    with pytest.raises(BadSettings, match="operation_url must hold"):
        open_provider(channel)
