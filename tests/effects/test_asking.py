"""Dana asks the provider now: a hit settles the row, anything else is evidence."""

import pytest

from accounts.errors import Refused
from effects.asking import ask_now
from effects.models import Effect
from tests import world
from tests.fakes import FakeHttp

pytestmark = pytest.mark.django_db(transaction=True)


def asked(state: str, *, filed: bool = True, times: int = 1) -> Effect:
    """An effect in this state, about which Dana asked the provider."""
    with FakeHttp() as provider:
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0})
        effect = world.an_effect(state, channel=channel)
        if filed:
            provider.filed[f"{effect.key}:0"] = "r-5"
        for stale in [Effect.objects.get(pk=effect.pk) for _ in range(times)]:
            ask_now(stale, by=world.acting(world.dana()))
    return Effect.objects.get(pk=effect.pk)


def test_a_hit_settles_an_unknown_row_as_a_ruling_and_a_second_one_is_evidence_only() -> None:
    effect = asked("unknown", times=2)
    first, _ = effect.look_ups.order_by("id")
    assert (effect.state, effect.receipt, effect.ruled, effect.evidence) == ("done", "r-5", True, f"look-up {first.pk}: r-5")
    assert effect.events.filter(after="done").count() == 1


def test_a_hit_on_a_pending_row_is_noted_and_the_row_is_left_to_the_machine() -> None:
    effect = asked("pending")
    assert (effect.state, effect.ruled, effect.look_ups.get().receipt) == ("pending", False, "r-5")


def test_a_miss_settles_nothing() -> None:
    effect = asked("unknown", filed=False)
    assert (effect.state, effect.look_ups.get().answer) == ("unknown", "absent")


def test_it_refuses_charlie() -> None:
    with pytest.raises(Refused):
        ask_now(world.an_effect("unknown"), by=world.acting(world.charlie()))
