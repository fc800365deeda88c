"""From approval to the socket: chunks, leases, and what a stop, a pause or a lost message changes (timing, and nothing else)."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from kombu.exceptions import OperationalError

from accounts.errors import Refused
from approvals import dispatch, halting, tasks, voting
from approvals.coverage import counts, is_settled
from approvals.models import Chunk, Plan
from effects.models import Effect
from effects.workplace import Workplace
from tests import world
from tests.approvals.sends import all_warnings, approved, due_again, figures, work
from tests.effects.pens import outside
from tests.fakes import FakeHttp, accepts_then_dies, answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]


def test_approval_announces_the_chunks_after_the_commit(no_broker: list[int]) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
    assert no_broker == [chunk.pk for chunk in plan.chunks.all()]


def test_an_approval_is_kept_when_the_broker_is_gone(monkeypatch: pytest.MonkeyPatch, workplace: Workplace) -> None:
    """BR-05b: kept rows go out once somebody looks, message or not."""

    def gone(chunk_id: int) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(tasks.look_at, "delay", gone)
    with FakeHttp() as provider:
        plan = approved(provider)
        assert plan.state == "approved"
        Chunk.objects.update(announced_at=None)
        assert dispatch.due_chunks() == [plan.chunks.get().pk], "beat finds them"
        work(workplace, plan)
    assert figures(plan) == {"rows": 3, "done": 3}


def test_every_approved_target_gets_one_and_the_sum_closes(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["customer2@example.com"] = accepts_then_dies()
        provider.behaviours["customer3@example.com"] = answers(422)
        plan = approved(provider, 5)
        work(workplace, plan)
        assert max(provider.deliveries.values()) == 1
    assert figures(plan) == {"rows": 5, "done": 3, "unknown": 1, "failed": 1}
    assert not is_settled(counts(plan))


@pytest.mark.parametrize("times", [2, 5])
def test_a_repeated_message_sends_nothing_twice(workplace: Workplace, times: int) -> None:
    with FakeHttp() as provider:
        plan = approved(provider, 4)
        for _ in range(times):
            work(workplace, plan)
            due_again(plan)
        assert set(provider.calls.values()) == {1}


def test_two_workers_on_one_chunk_share_nothing(workplace: Workplace) -> None:
    other = Workplace()
    with FakeHttp() as provider:
        plan = approved(provider, 4)
        chunk = plan.chunks.get()
        Chunk.objects.filter(pk=chunk.pk).update(leased_by="another", leased_until=timezone.now() + timedelta(seconds=30))
        assert other.run(dispatch.work_on(chunk.pk, other)) == []
        assert not provider.calls
        Chunk.objects.filter(pk=chunk.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
        other.run(dispatch.work_on(chunk.pk, other))
        assert sum(provider.deliveries.values()) == 4
    other.close()


def test_a_finished_chunk_is_never_due_again(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
        work(workplace, plan)
    assert plan.chunks.get().due_at is None
    assert dispatch.due_chunks() == []


def test_a_plan_of_many_chunks_goes_out_whole(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voting, "CHUNK", 7)
    with FakeHttp() as provider:
        plan = approved(provider, 40)
        assert plan.chunks.count() == 6
        workplace.run(dispatch.work_on(plan.chunks.order_by("id")[0].pk, workplace))
        assert sum(provider.deliveries.values()) == 40, "one turn takes chunk after chunk"
    assert figures(plan) == {"rows": 40, "done": 40}


def test_a_paused_plan_sends_nothing_until_it_is_resumed(workplace: Workplace) -> None:
    alice = world.acting(world.alice())
    with FakeHttp() as provider:
        plan = approved(provider)
        halting.pause(plan, by=alice, reason="one moment")
        due_again(plan)
        assert dispatch.due_chunks() == []
        work(workplace, plan)
        assert not provider.calls
        halting.resume(plan, by=alice)
        work(workplace, plan)
        assert sum(provider.deliveries.values()) == 3


def test_a_pause_in_the_middle_takes_hold_at_the_next_window(workplace: Workplace) -> None:
    from effects.models import Pause

    with FakeHttp() as provider:
        plan = approved(provider, 60)
        paused: list[bool] = []

        def pause_once(body: object) -> None:
            if not paused and len(provider.calls) == 10:
                paused.append(True)
                outside(
                    "INSERT INTO effects_pause (workspace_id, subject, reason, started_by, lifted_by) "
                    "VALUES (%s, %s, 'stop', 'a test', '') RETURNING id",
                    plan.workspace_id,
                    f"plan:{plan.pk}",
                )

        provider.before_answer = pause_once
        work(workplace, plan)
        assert 10 <= sum(provider.calls.values()) <= 10 + 2 * 8, "what was reserved goes out, and no more"
        assert Pause.objects.count() == 1
    assert figures(plan)["waiting"] == 60 - sum(provider.calls.values())


def test_a_stopped_plan_never_sends_again(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
        halting.stop(plan, by=world.acting(world.alice()), reason="wrong list")
        due_again(plan)
        work(workplace, plan)
        assert not provider.calls
    assert figures(plan) == {"rows": 3, "waiting": 3}


def test_an_expired_approval_sends_nothing(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
        Plan.objects.filter(pk=plan.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
        work(workplace, plan)
        assert dispatch.due_chunks() == []
        assert not provider.calls


def test_excluded_rows_are_counted_and_never_sent(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0})
        plan = world.a_proposed_plan(4, channel=channel)
        alice = world.acting(world.alice())
        assert voting.exclude(plan, by=alice, positions=[2, 3], reason="they asked us not to write") == 2
        plan.refresh_from_db()
        voting.approve(plan, by=alice, digest=plan.digest, ticked=all_warnings(plan))
        work(workplace, plan)
        assert set(provider.deliveries) == {"customer1@example.com", "customer4@example.com"}
    assert figures(plan) == {"rows": 4, "excluded": 2, "done": 2}


def test_a_target_done_by_an_earlier_plan_is_covered(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        work(workplace, approved(provider, 2))
        second = approved(provider, 3)
        work(workplace, second)
        assert provider.deliveries == {f"customer{n}@example.com": 1 for n in (1, 2, 3)}
    assert figures(second) == {"rows": 3, "done": 1, "covered": 2}


def test_what_may_pass_is_tried_again_and_what_may_not_is_not(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours["customer1@example.com"] = answers(429, headers="Retry-After: 0\r\n")
        provider.behaviours["customer2@example.com"] = answers(400)
        plan = approved(provider, 2)
        work(workplace, plan)
        provider.behaviours.clear()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE effects_pause SET lifted_at = now()")
        due_again(plan)
        work(workplace, plan)
        assert provider.calls == {"customer1@example.com": 2, "customer2@example.com": 1}
    assert figures(plan) == {"rows": 2, "done": 1, "failed": 1}
    assert sorted(Effect.objects.filter(target="customer1@example.com").values_list("attempt", "state")) == [
        (1, "failed"),
        (2, "done"),
    ]


def test_the_broker_never_holds_more_than_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voting, "CHUNK", 1)
    monkeypatch.setattr(dispatch, "ANNOUNCED_AT_ONCE", 5)
    with FakeHttp() as provider:
        plan = approved(provider, 12)
    assert plan.chunks.filter(announced_at__isnull=False).count() == 5
    assert len(dispatch.due_chunks()) == 5
    assert len(dispatch.due_chunks()) == 2
    assert dispatch.due_chunks() == []


@pytest.mark.parametrize("held", ["paused", "expired"])
def test_a_plan_that_may_not_send_makes_no_messages(workplace: Workplace, monkeypatch: pytest.MonkeyPatch, held: str) -> None:
    monkeypatch.setattr(voting, "CHUNK", 2)
    with FakeHttp() as provider:
        plan = approved(provider, 10)
        if held == "paused":
            halting.pause(plan, by=world.acting(world.alice()), reason="one moment")
        else:
            Plan.objects.filter(pk=plan.pk).update(expires_at=timezone.now())
        due_again(plan)
        assert work(workplace, plan) == []
        assert dispatch.due_chunks() == []


def test_silence_never_becomes_a_yes() -> None:
    plan = world.a_proposed_plan()
    Plan.objects.filter(pk=plan.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert dispatch.expire_plans() == 1
    plan.refresh_from_db()
    assert plan.state == "expired"
    assert not plan.chunks.exists()


@pytest.mark.parametrize("who", ["ed", "charlie"])
def test_it_refuses_who_may_not_halt(who: str) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
    for verb in (halting.pause, halting.stop):
        with pytest.raises((Refused, Plan.DoesNotExist)):
            verb(plan, by=world.acting(getattr(world, who)()), reason="mischief")
