"""All thirty-six pairs of states, through Python and through the database: both draw the same picture."""

from itertools import product

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from effects.models import Channel, Effect, Epoch, Event, KeptReply, LookUp
from effects.states import ARROWS, BLOCKING, FINAL, MACHINE_ARROWS, State, may_go, ways_out
from tests import world

pytestmark = pytest.mark.django_db
PAIRS = [(before, after) for before, after in product(State, State) if before != after]


def try_to_move(effect: Effect, after: State) -> bool:
    """True when the database lets this effect go there."""
    receipt = "a receipt" if after is State.DONE else ""
    settled_at = None if after is State.PENDING else timezone.now()
    try:
        with transaction.atomic():
            Effect.objects.filter(pk=effect.pk).update(state=after, settled_at=settled_at, receipt=receipt, settled_by="a test")
    except IntegrityError:
        return False
    return True


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: state.value)
def test_python_and_database_agree_on_every_arrow(before: State, after: State) -> None:
    effect = world.an_effect(before)
    assert try_to_move(effect, after) == may_go(before, after)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.value)
def test_only_open_states_may_be_written_without_moving(state: State) -> None:
    effect = world.an_effect(state)
    try:
        with transaction.atomic():
            Effect.objects.filter(pk=effect.pk).update(look_up_at=timezone.now())
        written = True
    except IntegrityError:
        written = False
    assert written == (state not in FINAL)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.value)
def test_an_effect_is_born_pending(state: State) -> None:
    effect = world.an_effect("failed")
    effect.pk, effect.attempt, effect.state = None, 2, state
    effect.settled_at = None if state is State.PENDING else timezone.now()
    effect.receipt = "r" if state is State.DONE else ""
    try:
        with transaction.atomic():
            effect.save(force_insert=True)
        born = True
    except IntegrityError:
        born = False
    assert born == (state is State.PENDING)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.value)
def test_blocking_states_hold_the_key_and_the_others_free_it(state: State) -> None:
    effect = world.an_effect(state)
    if state in BLOCKING:
        with pytest.raises(IntegrityError, match="one_live_effect_per_key_and_epoch"), transaction.atomic():
            world.an_effect("pending", target=effect.target)
    else:
        assert world.an_effect("pending", target=effect.target).attempt == 2


def test_there_are_nine_arrows_and_the_machine_takes_six_of_them() -> None:
    assert "".join(ARROWS) == "bcdefghij"
    assert sorted(MACHINE_ARROWS) == list("bcdefh")
    assert ways_out(State.UNKNOWN) == (State.DONE, State.FAILED, State.STRANDED, State.REVOKED)
    assert not any(ways_out(state) for state in FINAL)


def test_every_arrow_taken_leaves_one_event() -> None:
    effect = world.an_effect("unknown", reason="no answer")
    assert try_to_move(effect, State.DONE)
    trail = list(Event.objects.filter(effect=effect).order_by("id").values_list("before", "after", "by"))
    assert trail == [("pending", "unknown", "the tests"), ("unknown", "done", "a test")]


@pytest.mark.parametrize("column", ["key", "epoch", "attempt", "target", "content_digest", "plan_id", "worker", "amount_minor"])
def test_what_an_effect_is_never_changes(column: str) -> None:
    effect = world.an_effect("unknown")
    value = 9 if column in ("epoch", "attempt", "plan_id", "amount_minor") else "other"
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        Effect.objects.filter(pk=effect.pk).update(**{column: value})


def test_an_effect_goes_out_by_a_channel_of_its_own_workspace() -> None:
    effect = world.an_effect("pending")
    elsewhere = world.a_channel(world.a_workspace("umbrella"))
    for channel_id in (elsewhere.pk, 999_999):
        copy = Effect.objects.get(pk=effect.pk)
        copy.pk, copy.key, copy.channel_id = None, "v1:other", channel_id
        with pytest.raises(IntegrityError, match="a channel of its own workspace"), transaction.atomic():
            copy.save(force_insert=True)


def test_a_channel_stays_and_stays_where_it_is() -> None:
    channel = world.a_channel()
    with pytest.raises(IntegrityError, match="for good"), transaction.atomic():
        Channel.objects.filter(pk=channel.pk).update(workspace=world.a_workspace("umbrella"))
    with pytest.raises(IntegrityError, match="never deleted"), transaction.atomic():
        Channel.objects.filter(pk=channel.pk)._raw_delete("default")


@pytest.mark.parametrize("rows", ["effects", "replies", "events", "epochs", "look-ups"])
def test_what_is_written_stays_written(rows: str) -> None:
    effect = world.an_effect("done")
    KeptReply.objects.create(effect=effect, kind="answered", raw=b"HTTP/1.1 200 OK")
    LookUp.objects.create(effect=effect, by="a test", answer="absent")
    Epoch.objects.create(
        workspace=effect.workspace, key=effect.key, epoch=1, supersedes=effect, opened_by=world.dana(), reason="moved house"
    )
    model = {"effects": Effect, "replies": KeptReply, "events": Event, "epochs": Epoch, "look-ups": LookUp}[rows]
    with pytest.raises(IntegrityError, match="never deleted"), transaction.atomic():
        model.objects.all()._raw_delete("default")
    if model is not Effect:
        with pytest.raises(IntegrityError, match="never updated"), transaction.atomic():
            model.objects.update(**{model._meta.pk.attname: 999_999})
