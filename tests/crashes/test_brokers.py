"""What the broker and beat may do to a plan on its way: nothing, whether they lose, repeat, wake late or are away."""

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.utils import timezone

from approvals import queries
from approvals.coverage import counts
from approvals.models import Plan
from audit.models import Entry
from config.stack import Stack
from effects.models import Effect
from tests import world
from tests.crashes.invariants import broken
from tests.crashes.processes import a_plan, wait_for
from tests.crashes.story import Journal, facts_of
from tests.fakes import FakeHttp

pytestmark = [pytest.mark.crashes, pytest.mark.django_db(transaction=True)]


def test_br_03_a_broker_that_comes_back_empty(
    stack: Stack, provider: FakeHttp, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the twentieth of fifty the broker dies and loses all it had. The run's page tells; nobody does anything but start it again."""
    monkeypatch.setattr(queries, "PATIENCE", 1.0)
    broker = stack.embedded.valkey
    assert broker is not None
    stack.start("worker")
    stack.start("beat")
    plan = a_plan(provider, 50, rate=8.0)  # more than one turn takes
    ed = world.signed_in(world.ed())

    def run_page_tells() -> bool:
        return "has taken this up since" in ed.get(f"/acme/runs/{plan.run_id}/").content.decode()

    wait_for(lambda: sum(provider.deliveries.values()) >= 20, "twenty deliveries")
    assert not run_page_tells()
    assert broker.child
    broker.child.kill()
    shutil.rmtree(broker.data)
    wait_for(run_page_tells, "the outage to be seen")
    stack.services()
    wait_for(lambda: counts(plan)["done"] == 50, "the last of fifty")
    assert not run_page_tells()
    assert provider.deliveries == {row.target: 1 for row in world.rows_of(plan)}
    assert broken(facts_of(plan, journal.posts), calm=True) == []


def test_br_04_a_beat_that_wakes_beside_another(stack: Stack, provider: FakeHttp, journal: Journal) -> None:
    """One is stopped, another takes its place, the first goes on: each row is sent once, and what is overdue is closed once.

    Neither holds a lock that could be lost: what they announce are hints, and what they close is closed by one conditional write.
    """
    stack.commands["beat2"] = stack.commands["beat"].replace("/schedule", "/schedule2")
    first = stack.start("beat").pid
    overdue = world.a_proposed_plan(1, event_id="late", channel=world.a_channel(slug="other"))
    wait_for(lambda: "Sending due task" in stack.logs("beat"), "the first beat")
    os.killpg(first, signal.SIGSTOP)
    stack.start("beat2")
    wait_for(lambda: "Sending due task" in stack.logs("beat2"), "the second beat")
    Plan.objects.filter(pk=overdue.pk).update(expires_at=timezone.now())
    os.killpg(first, signal.SIGCONT)
    stack.start("worker")
    plan = a_plan(provider, 20)
    wait_for(lambda: counts(plan)["done"] == 20, "all twenty")
    wait_for(lambda: Plan.objects.get(pk=overdue.pk).state == "expired", "the overdue plan's end")
    time.sleep(1)  # both go on for a while
    assert provider.deliveries == {row.target: 1 for row in world.rows_of(plan)}
    assert Entry.objects.filter(act="plan expired").count() == 1
    assert broken(facts_of(plan, journal.posts), calm=True) == []


def hold_commits(seconds: float, *, then: str = "") -> None:
    """Have the database take its time with every commit of a decision, and refuse it in the end if told."""
    end = f"RAISE EXCEPTION '{then}';" if then else "RETURN NULL;"
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN PERFORM pg_sleep({seconds}); {end} END $$;"
            "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON approvals_decision DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION dawdle()"
        )


@pytest.fixture
def dawdling() -> Iterator[Callable[..., None]]:
    yield hold_commits
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS dawdle() CASCADE")


def test_br_05a_an_approval_held_open_after_its_publish_point(
    stack: Stack, provider: FakeHttp, journal: Journal, dawdling: Callable[..., None]
) -> None:
    """The commit takes two seconds while a worker idles: nobody looks at a chunk before it is there."""
    stack.start("worker")
    wait_for(lambda: "ready." in stack.logs("worker"), "the worker")
    dawdling(2.0)
    plan = a_plan(provider, 3)
    wait_for(lambda: counts(plan)["done"] == 3, "the letters; without beat, the one message must do")
    said = stack.logs("worker")
    assert len(re.findall(r"Task approvals.look_at\S+ received", said)) == 1
    assert "Traceback" not in said
    assert broken(facts_of(plan, journal.posts), calm=True) == []


def test_br_05b_an_approval_while_the_broker_is_down(stack: Stack, provider: FakeHttp, journal: Journal) -> None:
    """It is wholly kept, and its rows go out once the broker is back, without anybody's doing."""
    stack.start("worker")
    stack.start("beat")
    wait_for(lambda: "ready." in stack.logs("worker"), "the worker")
    assert stack.embedded.valkey is not None
    assert stack.embedded.valkey.child is not None
    stack.embedded.valkey.child.kill()
    plan = a_plan(provider, 3)
    assert (plan.state, plan.chunks.count(), plan.decisions.count()) == ("approved", 1, 1)
    time.sleep(1.0)
    assert not provider.calls
    stack.embedded.start()
    wait_for(lambda: counts(plan)["done"] == 3, "the letters")
    assert broken(facts_of(plan, journal.posts), calm=True) == []


def test_br_05c_an_approval_that_is_rolled_back_after_its_publish_point(
    stack: Stack, provider: FakeHttp, dawdling: Callable[..., None]
) -> None:
    stack.start("worker")
    stack.start("beat")
    wait_for(lambda: "ready." in stack.logs("worker"), "the worker")
    dawdling(0.5, then="out of luck")
    with pytest.raises(Exception, match="out of luck"):
        a_plan(provider, 3)
    time.sleep(1.5)
    plan = Plan.objects.get()
    assert (plan.state, plan.chunks.count(), plan.decisions.count()) == ("proposed", 0, 0)
    assert not provider.calls
    assert not Effect.objects.exists()
    assert "look_at" not in stack.logs("worker").partition("ready.")[2]
