"""Cases that were real faults of real systems doing this job, told with processes of their own. Each test is named after its case."""

import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from approvals import halting
from approvals.coverage import counts
from approvals.models import Plan
from effects.models import Effect
from tests import world
from tests.crashes.hands import Hand
from tests.crashes.story import Journal, an_approved_plan, chunks_of
from tests.fakes import FakeHttp, accepts_slowly

pytestmark = [pytest.mark.crashes, pytest.mark.django_db(transaction=True)]
QUICK = {"timeout": 0.8, "settle_window": 0.0, "window": 4}


@pytest.fixture
def provider(committed: None) -> Iterator[FakeHttp]:
    with FakeHttp() as http:
        yield http


@pytest.fixture
def journal(provider: FakeHttp) -> Iterator[Journal]:
    book = Journal(provider)
    yield book
    book.close()


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
