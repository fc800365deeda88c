"""What a person may write to the ledger: resolve, revoke, open an epoch. Dana operates; the others may not."""

import pytest
from django.db import IntegrityError, transaction

from accounts.errors import LostRace, Refused
from audit.models import Entry
from effects import rulings
from effects.models import Effect, Epoch, Event
from effects.states import State
from tests import world

pytestmark = pytest.mark.django_db(transaction=True)


def resolve(effect: Effect, to: str, *, by: str = "dana", **fields: object) -> Effect:
    words = {"reason": "asked the customer", "evidence": "they forwarded it", "seen": "unknown"} | fields
    return rulings.resolve(effect, to=State(to), by=world.acting(getattr(world, by)()), **words)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", ["done", "failed", "stranded", "revoked"])
def test_she_resolves_an_unknown_effect(to: str) -> None:
    settled = resolve(world.an_effect("unknown"), to)
    assert (settled.state, settled.reason, settled.evidence) == (to, "asked the customer", "they forwarded it")
    assert settled.settled_by == "Dana <dana@people.example>"
    assert Event.objects.filter(effect=settled, before="unknown", after=to, by=settled.settled_by).count() == 1


def test_the_act_is_on_the_record_with_who_why_before_and_after() -> None:
    effect = resolve(world.an_effect("unknown"), "failed")
    entry = Entry.objects.get(act="effect resolved as failed")
    assert (entry.actor_name, entry.object_id, entry.reason) == (effect.settled_by, effect.pk, "asked the customer")
    assert (entry.before, entry.after["state"]) == ({"state": "unknown"}, "failed")


@pytest.mark.parametrize("before", ["pending", "done", "failed", "stranded", "revoked"])
def test_she_resolves_nothing_but_unknowns(before: str) -> None:
    effect = world.an_effect(before)
    with pytest.raises(LostRace, match=f"is {before} by now"):
        resolve(effect, "failed")
    assert Effect.objects.get(pk=effect.pk).state == before
    assert not Entry.objects.filter(object_kind="effect").exists()


def test_the_second_of_two_rulings_loses() -> None:
    effect = world.an_effect("unknown")
    resolve(effect, "done")
    with pytest.raises(LostRace, match="is done by now") as lost:
        resolve(effect, "failed")
    assert lost.value.current.receipt == "they forwarded it"


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"reason": " "}, "Say why"),
        ({"to": "done", "evidence": ""}, "Name the evidence"),
        ({"to": "done", "again": True}, "sent again"),
    ],
)
def test_it_asks_for_what_is_missing(fields: dict[str, object], advice: str) -> None:
    effect = world.an_effect("unknown")
    with pytest.raises(Refused, match=advice):
        resolve(effect, str(fields.pop("to", "failed")), **fields)
    assert Effect.objects.get(pk=effect.pk).state == "unknown"


@pytest.mark.parametrize("person", ["alice", "ed"])
def test_it_refuses_who_does_not_operate(person: str) -> None:
    with pytest.raises(Refused, match="Your role may not"):
        resolve(world.an_effect("unknown"), "failed", by=person)


def test_it_refuses_charlie() -> None:
    with pytest.raises((Refused, Effect.DoesNotExist)):
        resolve(world.an_effect("unknown"), "failed", by="charlie")


def test_rights_are_read_at_the_moment_of_the_act() -> None:
    human = world.acting(world.dana())
    human.user.memberships.update(role="auditor")
    with pytest.raises(Refused):
        rulings.resolve(world.an_effect("unknown"), to=State.FAILED, by=human, reason="r", evidence="e", seen="unknown")


def test_not_delivered_frees_the_key_and_may_ask_for_another_attempt() -> None:
    once = resolve(world.an_effect("unknown"), "failed")
    again = resolve(world.an_effect("unknown", target="customer2@example.com"), "failed", again=True)
    assert once.retry_at is None
    assert again.retry_at is not None
    assert world.an_effect("pending", target=once.target).attempt == 2


@pytest.mark.parametrize("before", ["unknown", "stranded"])
def test_she_revokes_what_is_open(before: str) -> None:
    effect = world.an_effect(before)
    revoked = rulings.revoke(effect, by=world.acting(world.dana()), reason="called off", seen=before)
    assert revoked.state == "revoked"
    assert Entry.objects.get(act="effect revoked").before == {"state": before}


@pytest.mark.parametrize("before", ["pending", "done", "failed"])
def test_she_revokes_nothing_else(before: str) -> None:
    with pytest.raises(Refused):
        rulings.revoke(world.an_effect(before), by=world.acting(world.dana()), reason="called off", seen=before)


def test_she_opens_an_epoch_on_a_done_effect() -> None:
    effect = world.an_effect("done")
    epoch = rulings.open_epoch(effect, by=world.acting(world.dana()), reason="the first letter had the old address", seen_epoch=0)
    effect.refresh_from_db()
    assert (epoch.epoch, epoch.key, effect.superseded_by_id, effect.state) == (1, effect.key, epoch.pk, "done")
    assert Entry.objects.get(act="epoch opened").reason == "the first letter had the old address"
    assert world.an_effect("pending", target=effect.target, epoch=1).attempt == 1


def test_an_epoch_opens_once() -> None:
    effect, dana = world.an_effect("done"), world.acting(world.dana())
    rulings.open_epoch(effect, by=dana, reason="once", seen_epoch=0)
    with pytest.raises(LostRace, match="bumped already"):
        rulings.open_epoch(effect, by=dana, reason="twice", seen_epoch=0)
    assert Epoch.objects.count() == 1


@pytest.mark.parametrize("state", ["pending", "unknown", "failed", "stranded", "revoked"])
def test_no_epoch_opens_on_what_is_not_done(state: str) -> None:
    effect = world.an_effect(state)
    with pytest.raises(LostRace, match="only a done effect"):
        rulings.open_epoch(effect, by=world.acting(world.dana()), reason="why not", seen_epoch=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Epoch.objects.create(
            workspace=effect.workspace, key=effect.key, epoch=1, supersedes=effect, opened_by=world.dana(), reason="by force"
        )


def test_an_epoch_has_a_reason_and_a_person() -> None:
    effect = world.an_effect("done")
    with pytest.raises(Refused, match="once more"):
        rulings.open_epoch(effect, by=world.acting(world.dana()), reason="", seen_epoch=0)
    with pytest.raises(Refused, match="may not open epochs"):
        rulings.open_epoch(effect, by=world.acting(world.alice()), reason="please", seen_epoch=0)


def test_nothing_is_reserved_in_an_epoch_that_nobody_opened() -> None:
    with pytest.raises(IntegrityError, match="nobody opened epoch 1"), transaction.atomic():
        world.an_effect("pending", epoch=1)


def test_superseded_by_is_set_once_and_nothing_else_of_a_done_row_changes() -> None:
    effect = world.an_effect("done")
    rulings.open_epoch(effect, by=world.acting(world.dana()), reason="once", seen_epoch=0)
    for change in ({"superseded_by": None}, {"receipt": "other"}, {"reason": "other"}):
        with pytest.raises(IntegrityError, match="never changes again"), transaction.atomic():
            Effect.objects.filter(pk=effect.pk).update(**change)
