"""Dana asks the provider now: a hit settles the row, anything else is evidence."""

import pytest

from effects.asking import ask_now
from effects.errors import Refused
from effects.models import Effect
from tests import world
from tests.fakes import FakeHttp

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("state", "after"), [("unknown", "done"), ("pending", "done")])
def test_a_hit_settles_the_row_and_a_second_ruling_by_then_is_not_overruled(state: str, after: str) -> None:
    with FakeHttp() as provider:
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0})
        effect = world.an_effect(state, channel=channel)
        provider.filed[f"{effect.key}:0"] = "r-5"
        stale = Effect.objects.get(pk=effect.pk)
        ask_now(effect, by=world.acting(world.dana()))
        ask_now(stale, by=world.acting(world.dana()))
    effect.refresh_from_db()
    assert (effect.state, effect.receipt, effect.look_ups.count(), effect.events.filter(after="done").count()) == (
        after,
        "r-5",
        2,
        1,
    )


def test_it_refuses_charlie() -> None:
    with pytest.raises(Refused):
        ask_now(world.an_effect("unknown"), by=world.acting(world.charlie()))
