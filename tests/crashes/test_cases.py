"""Cases that were real faults of real systems doing this job, told with processes of their own. Each test is named after its case."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from approvals import dispatch, halting
from approvals.coverage import counts
from approvals.models import Plan
from effects.models import Effect
from tests import world
from tests.crashes.hands import START_WITHIN, Hand
from tests.crashes.invariants import broken
from tests.crashes.story import Journal, an_approved_plan, chunks_of, facts_of
from tests.fakes import FakeHttp, accepts_slowly

pytestmark = [pytest.mark.crashes, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("committed")]
QUICK = {"timeout": 0.8, "settle_window": 0.0, "window": 4}


def a_plan(provider: FakeHttp, rows: int, **settings: object) -> Plan:
    channel = world.a_channel(settings=provider.settings | QUICK | settings)
    return an_approved_plan(channel, rows=rows, event="case")


def at_work(plan: Plan, failpoints: str = "", *, task: str = "work") -> Hand:
    return Hand(task, plan.pk, plan.channel_id, chunks_of(plan), failpoints=failpoints)


def wait_for(what: Callable[[], bool], seconds: float = 15) -> None:
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.005)


@pytest.mark.parametrize(("row", "window", "seconds"), [(40, 50, 0.4), (20, 80, 1.5)])
def test_r_07_a_stop_holds_what_is_already_queued(
    provider: FakeHttp, journal: Journal, row: int, window: int, seconds: float
) -> None:
    """Nothing goes out later than a second after the stop, however many rows were read ahead."""
    provider.otherwise = accepts_slowly(seconds)
    plan = a_plan(provider, 100, window=window, timeout=5.0)
    hand = at_work(plan)
    wait_for(lambda: len(journal.posts) >= row)
    halting.stop(plan, by=world.acting(world.alice()), reason="wrong list")
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [stopped_at] = cursor.fetchone()
    in_flight = set(Effect.objects.filter(state="pending").values_list("target", flat=True))
    hand.end()
    late = [post.target for post in journal.posts if (post.at - stopped_at).total_seconds() > 1 and post.target not in in_flight]
    assert late == []
    assert row <= len(journal.posts) < 100
    figures = counts(plan)
    assert (figures["done"], figures["waiting"]) == (len(journal.posts), 100 - len(journal.posts))


def test_r_02_many_tasks_look_at_the_same_rows(provider: FakeHttp, journal: Journal) -> None:
    plan = a_plan(provider, 10)
    for hand in [at_work(plan) for _ in range(20)]:
        assert hand.end() == (0, [])
    assert [provider.calls[row.target] for row in world.rows_of(plan)] == [1] * 10
    assert broken(facts_of(plan, journal.posts), calm=True) == []


def test_br_01_messages_that_come_too_early_and_too_often_send_nothing_twice(provider: FakeHttp, journal: Journal) -> None:
    """Twenty rows that are not due yet: each copy of the message finds nothing to do; once they are due, one of many wins each row."""
    plan = a_plan(provider, 20)
    plan.chunks.update(due_at=timezone.now() + timedelta(seconds=3))
    for hand in [at_work(plan) for _ in range(4)]:
        assert hand.end() == (0, [])
    assert not journal.posts
    assert not Effect.objects.exists()
    wait_for(lambda: not plan.chunks.filter(due_at__gt=timezone.now()).exists())
    for hand in [at_work(plan) for _ in range(8)]:
        assert hand.end() == (0, [])
    assert provider.deliveries == {row.target: 1 for row in world.rows_of(plan)}
    assert broken(facts_of(plan, journal.posts), calm=True) == []


def test_r_01_a_row_that_kills_its_worker_each_time(provider: FakeHttp, journal: Journal) -> None:
    """It is tried once, then a person has it; the rows beside it go out; nothing dies over and over."""
    plan = a_plan(provider, 10, lookup_url="")
    deaths = 0
    while (ended := at_work(plan, "calling=case-5@example.com:kill", task="recover").end())[0] != 0:
        deaths += 1
        assert deaths <= 3, ended
    facts = facts_of(plan, journal.posts)
    assert deaths == 1
    assert broken(facts) == []
    [poison] = [row for row in facts.attempts if row.target == "case-5@example.com"]
    assert (poison.state, poison.id in facts.desk, provider.calls[poison.target]) == ("unknown", True, 0)
    assert counts(plan)["done"] >= 8, "one other call was under way at most"


def test_r_01_a_row_that_kills_its_worker_before_it_can_claim_it(provider: FakeHttp, journal: Journal) -> None:
    """Three workers end at it; then it is withheld and told, without being read again, and the rows beside it go out."""
    plan = a_plan(provider, 10, lookup_url="")
    deaths = 0
    while (ended := at_work(plan, "offer=case-5@example.com:kill", task="recover").end())[0] != 0:
        deaths += 1
        assert deaths <= 3, ended
    facts = facts_of(plan, journal.posts)
    assert (deaths, broken(facts)) == (3, [])
    [poison] = [row for row in facts.attempts if row.target == "case-5@example.com"]
    assert (poison.state, poison.reason, provider.calls[poison.target]) == ("failed", dispatch.POISON, 0)
    assert (counts(plan)["done"], counts(plan)["failed"]) == (9, 1)
    assert list(plan.chunks.values_list("takes", "trying", "due_at")) == [(0, None, None)]


def test_r_01_workers_that_die_of_something_else_condemn_no_row(provider: FakeHttp, journal: Journal) -> None:
    """One by one, each row but those under way goes out: only a row at which two ended in turn is withheld."""
    plan = a_plan(provider, 10, lookup_url="")
    for n in (1, 2, 3, 4):
        at_work(plan, f"offer=case-{n}@example.com:kill", task="recover").end()
    at_work(plan, task="recover").end()
    assert broken(facts_of(plan, journal.posts)) == []
    assert (counts(plan)["failed"], counts(plan)["done"] + counts(plan)["unknown"]) == (0, 10), "unknown: under way at a kill"


def test_r_01_a_row_that_was_read_is_not_to_blame_for_what_comes_after(provider: FakeHttp, journal: Journal) -> None:
    """Five workers end one after another before the same row is claimed, but after it was read: it goes out all the same."""
    plan = a_plan(provider, 3, lookup_url="")
    for _ in range(5):
        at_work(plan, "reserve:kill", task="recover").end()
    assert not Effect.objects.exists()
    at_work(plan, task="recover").end()
    assert provider.deliveries == {row.target: 1 for row in world.rows_of(plan)}
    assert broken(facts_of(plan, journal.posts)) == []


def test_r_01_a_database_that_goes_away_blames_no_row_and_keeps_no_chunk(provider: FakeHttp, journal: Journal) -> None:
    """The worker lives, so it leaves its chunk as soon as the database is back, for anybody to go on."""
    plan = a_plan(provider, 3, lookup_url="")
    at_work(plan, "reserve:cut").end()
    assert list(plan.chunks.values_list("takes", "trying", "leased_until", "leased_by")) == [(0, None, None, "")]
    at_work(plan).end()
    assert provider.deliveries == {row.target: 1 for row in world.rows_of(plan)}
    assert broken(facts_of(plan, journal.posts)) == []


@pytest.mark.parametrize("point", ["reserved", "calling", "first-byte"])
def test_a_worker_stopped_for_longer_than_its_claim_lives_does_not_send_when_it_wakes(
    provider: FakeHttp, journal: Journal, point: str
) -> None:
    """What it finds on waking is too old: nothing leaves, and the rows are sent by somebody else, once."""
    plan = a_plan(provider, 2)
    hand = at_work(plan, f"{point}:stop")
    assert hand.stopped()
    assert Effect.objects.filter(state="pending").count() == 2
    time.sleep(START_WITHIN + 0.3)
    hand.wake()
    hand.end()
    assert not provider.calls
    assert set(Effect.objects.values_list("state", "kept_reply__kind")) == {("failed", "not sent")}
    at_work(plan, task="recover").end()
    assert provider.deliveries == {"case-1@example.com": 1, "case-2@example.com": 1}
    assert broken(facts_of(plan, journal.posts)) == []
    assert counts(plan)["done"] == 2


def test_a_restarted_worker_on_the_same_host_is_another_worker(provider: FakeHttp, journal: Journal) -> None:
    """It does not own what the dead one had: neither its chunk before the lease ends, nor its rows."""
    plan = a_plan(provider, 4)
    at_work(plan, "reserved:kill").end()
    [dead] = set(Effect.objects.values_list("worker", flat=True))
    at_work(plan).end()
    assert Effect.objects.count() == 2, "the chunk is still leased to the dead one"
    assert plan.chunks.get().leased_by.startswith(f"{dead}/")
    at_work(plan, task="recover").end()
    workers = set(Effect.objects.values_list("worker", flat=True))
    assert len(workers) == 2
    assert len({worker.split(":")[0] for worker in workers}) == 1
    assert set(Effect.objects.filter(worker=dead).values_list("state", flat=True)) == {"unknown"}
    assert broken(facts_of(plan, journal.posts)) == []
