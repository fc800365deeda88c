"""What late news does to the ledger: every state with every kind, through the real sweeper."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from effects import failpoints, ledger, rulings
from effects.applying import apply_callbacks
from effects.connections import GONE
from effects.models import Callback, Channel, Effect, Event, KeptReply
from effects.states import State
from effects.sweeping import sweep
from effects.verdicts import done
from effects.workplace import Workplace
from tests import world
from tests.callers import kept
from tests.effects.pens import claims_to, reserve, send
from tests.fakes import FakeHttp, answers

pytestmark = pytest.mark.django_db(transaction=True)

TAKEN = answers(202, b'{"operation_id": "op-1", "status": "queued"}', accepted=True)

# (state, what is told) -> (state after, what it came to; nothing: it waits)
TABLE = {
    ("pending", "delivered"): ("pending", ""),  # the call is under way: its worker speaks first
    ("pending", "bounced"): ("pending", ""),
    ("pending", "rejected"): ("pending", ""),
    ("unknown", "delivered"): ("done", "settled"),
    ("unknown", "bounced"): ("unknown", ""),  # arrow g is a person's
    ("unknown", "rejected"): ("unknown", ""),
    ("done", "delivered"): ("done", "agreed"),
    ("done", "bounced"): ("done", "contrary"),
    ("done", "rejected"): ("done", "contrary"),
    ("failed", "delivered"): ("failed", "contrary"),
    ("failed", "bounced"): ("failed", "agreed"),
    ("failed", "rejected"): ("failed", "agreed"),
    ("stranded", "delivered"): ("stranded", "contrary"),
    ("stranded", "bounced"): ("stranded", "agreed"),
    ("stranded", "rejected"): ("stranded", "agreed"),
    ("revoked", "delivered"): ("revoked", "contrary"),
    ("revoked", "bounced"): ("revoked", "agreed"),
    ("revoked", "rejected"): ("revoked", "agreed"),
}


def swept(place: Workplace) -> int:
    """One sweep, as if the time until the next look had passed."""
    Callback.objects.filter(applied_at=None).update(due_at=timezone.now() - timedelta(seconds=1))
    return place.run(sweep(place))


def became(effect: Effect, one: Callback) -> tuple[str, str]:
    effect.refresh_from_db()
    one.refresh_from_db()
    return effect.state, one.outcome


@pytest.mark.parametrize(("state", "kind"), TABLE)
def test_every_state_and_every_kind(workplace: Workplace, state: str, kind: str) -> None:
    effect = world.an_effect(state)
    arrows = Event.objects.count()
    one = kept(effect, kind, receipt="late-7")
    for _ in range(3):
        swept(workplace)
        assert became(effect, one) == TABLE[state, kind]
    assert bool(one.applied_at) == bool(one.outcome)
    assert Event.objects.count() - arrows == (state != effect.state), "applied once"
    assert effect.receipt == (
        "late-7" if (state, effect.state) == ("unknown", "done") else f"receipt-{effect.pk}" * (state == "done")
    )


def test_proof_leaves_the_trail_of_a_machine(workplace: Workplace) -> None:
    effect = world.an_effect("unknown")
    kept(effect, "delivered", receipt="r-7")
    swept(workplace)
    effect.refresh_from_db()
    assert (effect.reason, effect.ruled, effect.look_up_at) == ("the provider called back: delivered", False, None)
    assert effect.events.get(after="done").by == f"sweeper {workplace.worker}"


def test_without_a_receipt_it_is_no_proof(workplace: Workplace) -> None:
    effect = world.an_effect("unknown")
    one = kept(effect, "delivered")
    swept(workplace)
    assert became(effect, one) == ("unknown", "")


def awaited(workplace: Workplace, provider: FakeHttp) -> Effect:
    """An effect that the provider accepted, to decide later."""
    provider.behaviours["ada@example.com"] = TAKEN
    send(workplace, world.a_channel(settings=provider.settings | {"timeout": 1.0, "settle_window": 60.0}), claims_to("ada"))
    effect = Effect.objects.get()
    assert (effect.state, effect.reason) == ("pending", "HTTP 202: operation op-1, decided later")
    return effect


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("delivered", {"receipt": "r-7"}, ("done", "settled")),
        ("delivered", {}, ("pending", "")),
        ("rejected", {}, ("failed", "settled")),
        ("rejected", {"exact": False}, ("pending", "")),  # perhaps it speaks of an earlier attempt
        ("bounced", {"receipt": "r-7"}, ("pending", "")),
    ],
)
def test_what_is_awaited_may_be_decided_by_a_callback(
    workplace: Workplace, kind: str, fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    with FakeHttp() as provider:
        effect = awaited(workplace, provider)
        one = kept(effect, kind, **fields)
        for _ in range(2):
            swept(workplace)
            assert became(effect, one) == expected
        assert provider.calls == {"ada@example.com": 1}
    assert effect.retry_at is None
    assert (effect.look_up_at is None) == (expected[0] != "pending")
    if effect.state == "failed":
        assert effect.reason == "accepted, then refused: the provider called back"


def test_a_call_under_way_is_left_to_its_worker_and_then_held_against_it(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0})
        [won] = reserve(workplace, channel, claims_to("ada"))
        effect = Effect.objects.get(pk=won.id)
        early, bad = kept(effect, "delivered", receipt="theirs"), kept(effect, "rejected")
        swept(workplace)
        assert became(effect, early) == ("pending", "")

        async def settle() -> None:
            async with workplace.pens() as pen:
                await ledger.keep_and_settle(
                    await pen("recording"), replies=[], verdicts=[(won.id, done("ours"))], by="w", max_attempts=3, can_look_up=False,
                )  # fmt: skip

        workplace.run(settle())
        swept(workplace)
    assert became(effect, early) == ("done", "agreed")
    assert became(effect, bad) == ("done", "contrary")
    assert effect.receipt == "ours"


def test_a_reply_that_nobody_has_read_yet_speaks_first(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        [won] = reserve(workplace, world.a_channel(settings=provider.settings), claims_to("ada"))
        effect = Effect.objects.get(pk=won.id)
        KeptReply.objects.create(effect=effect, kind="answered", raw=b'HTTP/1.1 200 OK\r\n\r\n{"id": "r-1"}')
        callbacks = [kept(effect, "delivered", receipt="theirs"), kept(effect, "rejected")]
        swept(workplace)
        assert [became(effect, one) for one in callbacks] == [("pending", ""), ("pending", "")]


@pytest.mark.parametrize(("kind", "expected"), [("delivered", "done"), ("rejected", "pending")])
def test_past_its_deadline_delivered_is_as_good_as_a_look_up(workplace: Workplace, kind: str, expected: str) -> None:
    with FakeHttp() as provider:
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0, "settle_window": 600.0})
        [won] = reserve(workplace, channel, claims_to("ada"), deadline=0.001)
        effect = Effect.objects.get(pk=won.id)
        one = kept(effect, kind, receipt="r-7")
        swept(workplace)
        assert became(effect, one)[0] == expected


@pytest.mark.parametrize(("to", "outcome"), [("done", "contrary"), ("failed", "agreed"), ("revoked", "agreed")])
def test_what_waited_is_held_against_the_ruling(workplace: Workplace, to: str, outcome: str) -> None:
    """The order in which a bounce and a person arrive makes no difference to what is news."""
    effect = world.an_effect("unknown")
    one = kept(effect, "bounced")
    swept(workplace)
    rulings.resolve(effect, to=State(to), by=world.acting(world.dana()), reason="r", evidence="e", seen="unknown")
    swept(workplace)
    assert became(effect, one) == (to, outcome)


def test_the_same_news_again_is_no_news(workplace: Workplace) -> None:
    effect = world.an_effect("done")
    told = [kept(effect, kind) for kind in ("bounced", "bounced", "rejected", "bounced")]
    swept(workplace)
    assert [became(effect, one)[1] for one in told] == ["contrary", "repeated", "contrary", "repeated"]


def test_a_lost_race_changes_nothing_and_is_looked_at_again(workplace: Workplace) -> None:
    effect = world.an_effect("unknown")
    one = kept(effect, "delivered", receipt="r-7")
    rulings.resolve(effect, to=State.FAILED, by=world.acting(world.dana()), reason="r", evidence="", seen="unknown")

    async def too_late() -> bool:
        async with workplace.pens() as pen:
            return await ledger.settle_by_callback(
                await pen("sweeping"), one.pk, effect.pk, seen=State.UNKNOWN, to=State.DONE, receipt="r-7", reason="late", by="x",
                awaited=False,
            )  # fmt: skip

    assert not workplace.run(too_late())
    assert became(effect, one) == ("failed", "")
    swept(workplace)
    assert became(effect, one) == ("failed", "contrary")


def test_sweepers_at_once_apply_it_once(workplace: Workplace) -> None:
    effects = [world.an_effect("unknown", target=f"p{n}@example.com") for n in range(10)]
    for effect in effects:
        kept(effect, "delivered", receipt="r")
        kept(effect, "bounced")

    async def both() -> None:
        await asyncio.gather(*(apply_callbacks(workplace) for _ in range(4)))

    workplace.run(both())
    swept(workplace)
    assert Event.objects.filter(before="unknown", after="done").count() == 10
    assert sorted(Callback.objects.values_list("outcome", flat=True)) == ["contrary"] * 10 + ["settled"] * 10


@pytest.mark.parametrize("broken", ["apply:raise", "applied:raise", "apply:cut", "applied:cut"])
def test_whatever_breaks_around_the_commit_it_is_applied_once(workplace: Workplace, broken: str) -> None:
    effect = world.an_effect("unknown")
    one = kept(effect, "delivered", receipt="r-7")
    failpoints.arm(f"{broken}@1")
    try:
        for _ in range(3):
            with contextlib.suppress(*GONE):
                swept(workplace)
    finally:
        failpoints.arm("")
    assert became(effect, one) == ("done", "settled")
    assert effect.events.count() == 1 + Event.objects.filter(effect=effect, after="unknown").count()


def test_a_channel_that_cannot_be_opened_holds_up_no_other(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        stuck = awaited(workplace, provider)
        Effect.objects.update(look_up_at=timezone.now() + timedelta(hours=1))
        Channel.objects.update(secrets="not a sealed text")
        waits = kept(stuck, "delivered", receipt="r")
        other = world.an_effect("unknown", channel=world.a_channel(slug="other"))
        moves = kept(other, "delivered", receipt="r")
        swept(workplace)
        assert became(stuck, waits) == ("pending", "")
        assert became(other, moves) == ("done", "settled")


def test_what_waits_is_looked_at_less_and_less_often(workplace: Workplace) -> None:
    one = kept(world.an_effect("unknown"), "bounced")
    assert swept(workplace) == 1
    assert workplace.run(sweep(workplace)) == 0
    one.refresh_from_db()
    assert timezone.now() < one.due_at < timezone.now() + timedelta(seconds=3)


def test_so_many_are_looked_at_in_one_sweep(workplace: Workplace) -> None:
    effect = world.an_effect("done")
    for _ in range(5):
        kept(effect, "delivered")
    assert [workplace.run(apply_callbacks(workplace, most=3)) for _ in range(3)] == [3, 2, 0]


def test_it_is_applied_once_whoever_asks() -> None:
    one = kept(world.an_effect("done"), "bounced")
    Callback.objects.update(outcome="contrary", applied_at=timezone.now(), due_at=None)
    for change in ({"outcome": "agreed"}, {"applied_at": None, "outcome": "", "due_at": timezone.now()}):
        with pytest.raises(IntegrityError, match="was applied already"):
            Callback.objects.filter(pk=one.pk).update(**change)
