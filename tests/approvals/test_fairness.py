"""One tenant never slows another: slow channels, big plans, busy processes, low rates."""

import threading
import time

import pytest
from django.utils import timezone

from approvals import dispatch, halting, tasks, voting
from approvals.dispatch import Busy
from approvals.models import Chunk, Plan
from audit.models import Entry
from effects.models import Effect
from effects.workplace import Workplace
from tests import world
from tests.approvals.sends import all_warnings, approved, figures, work
from tests.fakes import FakeHttp, accepts_then_hangs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]


def of_another_tenant(provider: FakeHttp, rows: int = 3) -> Plan:
    globex = world.a_workspace("globex")
    channel = world.a_channel(globex, settings=provider.settings | {"timeout": 1.0, "window": 8})
    plan = world.a_proposed_plan(rows, token=world.a_token(globex, owner=world.charlie()), channel=channel)
    reviewer = world.a_person("Rita", world.Role.REVIEWER, globex)
    voting.approve(plan, by=world.acting(reviewer, globex), digest=plan.digest, ticked=all_warnings(plan))
    return plan


def in_the_background(place: Workplace, chunk: Chunk) -> threading.Thread:
    thread = threading.Thread(target=lambda: place.run(dispatch.work_on(chunk.pk, place)))
    thread.start()
    return thread


def until_called(provider: FakeHttp, times: int = 1) -> None:
    deadline = time.monotonic() + 5
    while sum(provider.calls.values()) < times and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sum(provider.calls.values()) >= times


def test_a_channel_that_never_answers_holds_nobody_else_up(workplace: Workplace) -> None:
    with FakeHttp(otherwise=accepts_then_hangs()) as silent, FakeHttp() as lively:
        slow, quick = approved(silent, 3), of_another_tenant(lively)
        waiting = in_the_background(workplace, slow.chunks.get())
        until_called(silent, 3)
        work(workplace, quick)
        assert waiting.is_alive(), "the slow one is still waiting"
        assert figures(quick) == {"rows": 3, "done": 3}
        waiting.join()
    assert figures(slow) == {"rows": 3, "unknown": 3}


def test_a_process_serves_a_channel_once_at_a_time(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a killed process leaves a window of each channel, and no more."""
    monkeypatch.setattr(voting, "CHUNK", 2)
    with FakeHttp(otherwise=accepts_then_hangs()) as silent:
        plan = approved(silent, 4)
        first, second = plan.chunks.order_by("id")
        monkeypatch.setattr(dispatch, "SQL", dispatch.SQL | {"take_next": "SELECT 1 WHERE false AND %(plan_id)s = %(lease)s"})
        waiting = in_the_background(workplace, first)
        until_called(silent, 2)
        with pytest.raises(Busy):
            workplace.run(dispatch.work_on(second.pk, workplace))
        second.refresh_from_db()
        assert (second.leased_by, second.leased_until) == ("", None), "another process may have it at once"
        waiting.join()
        assert sum(silent.calls.values()) == 2


def test_a_busy_process_passes_a_message_on_a_few_times(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[tuple[int, ...]] = []
    monkeypatch.setattr(tasks.look_at, "delay", lambda *words: passed.append(words))

    async def busy(chunk_id: int, workplace: Workplace) -> list[int]:
        raise Busy

    monkeypatch.setattr(tasks, "work_on", busy)
    monkeypatch.setattr(tasks, "here", lambda: workplace)
    tasks.look_at(7)
    for passing in passed:
        tasks.look_at(*passing)
    assert passed == [(7, 1), (7, 2), (7, 3)]


def test_a_big_plan_leaves_room_for_a_small_one_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voting, "CHUNK", 1)
    monkeypatch.setattr(dispatch, "ANNOUNCED_AT_ONCE", 10)
    with FakeHttp() as provider:
        big, small = approved(provider, 30), of_another_tenant(provider, 1)
    Chunk.objects.update(announced_at=None)
    announced = dispatch.due_chunks()
    assert small.chunks.get().pk in announced
    assert big.chunks.filter(pk__in=announced).count() == dispatch.OF_ONE_PLAN


def test_a_low_rate_gives_its_thread_back(workplace: Workplace) -> None:
    """One call in twenty seconds: the turn ends instead of sleeping, and the chunk is due at the next slot."""
    with FakeHttp() as provider:
        plan = approved(provider, 3, rate=0.05)
        started = time.monotonic()
        assert work(workplace, plan) == []
        assert time.monotonic() - started < 10
        assert sum(provider.calls.values()) == 1
        wait = (plan.chunks.get().due_at - timezone.now()).total_seconds()
    assert 10 < wait <= 20


def test_r_07_a_stop_takes_hold_within_a_second_though_rows_were_read_ahead(workplace: Workplace) -> None:
    """Calls come back one by one, so the window that was read ahead would last for seconds after the stop."""
    with FakeHttp() as provider:
        provider.before_answer = lambda body: time.sleep(0.1)
        plan = approved(provider, 60, window=32, timeout=20.0)
        sending = in_the_background(workplace, plan.chunks.get())
        until_called(provider, 3)
        halting.stop(plan, by=world.acting(world.alice()), reason="wrong list")
        stopped = Entry.objects.get(act="plan stopped", object_id=plan.pk).at
        sending.join()
    late = [(effect.reserved_at - stopped).total_seconds() for effect in Effect.objects.filter(reserved_at__gt=stopped)]
    assert max(late, default=0) < 1
    plan.refresh_from_db()
    assert figures(plan) == {"rows": 60, "done": sum(provider.calls.values()), "waiting": 60 - sum(provider.calls.values())}
    assert figures(plan)["waiting"] > 10
