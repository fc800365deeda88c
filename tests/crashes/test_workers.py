"""The same promises with the real workers: `celery worker` and `celery beat`, their pool, their broker, and real kills."""

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection

from approvals import halting, tasks, voting
from approvals.coverage import counts, is_settled
from approvals.models import Plan
from config.celery import app
from config.stack import Stack
from effects import rulings
from effects.models import Effect
from effects.states import FINAL, State
from tests import world
from tests.crashes.conftest import address
from tests.crashes.invariants import broken
from tests.crashes.story import Journal, an_approved_plan, facts_of
from tests.fakes import FakeHttp, accepts_slowly

pytestmark = [pytest.mark.crashes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """Worker and beat of the test database, with a broker of their own; the test process speaks to the same broker."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-test-", dir="/var/tmp"))
    folder.chmod(0o711)
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"} | {"DATABASE_URL": address()}
    with Stack(folder, environment=environment, say=lambda line: None) as made:
        made.services()
        made.commands |= {
            "worker": "celery -A tests.crashes.hasty worker --loglevel INFO --concurrency 2 --without-mingle --without-gossip",
            "beat": f"celery -A tests.crashes.hasty beat --loglevel INFO --pidfile= --schedule {folder}/schedule",
        }
        speak_to(made.environment["REDIS_URL"], monkeypatch)
        yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def provider() -> Iterator[FakeHttp]:
    with FakeHttp() as http:
        yield http


@pytest.fixture
def journal(provider: FakeHttp) -> Iterator[Journal]:
    book = Journal(provider)
    yield book
    book.close()


def speak_to(broker: str, patch: pytest.MonkeyPatch) -> None:
    """Have this process send its messages there; where nobody listens, say so soon."""
    patch.setattr(tasks.look_at, "delay", lambda chunk: _send(broker, chunk))


def _send(broker: str, chunk: int) -> None:
    with app.connection_for_write(url=broker, transport_options={"socket_connect_timeout": 1}, connect_timeout=1) as there:
        tasks.look_at.apply_async((chunk,), connection=there, retry=False)


def a_plan(provider: FakeHttp, rows: int, **settings: object) -> Plan:
    quick = {"timeout": 1.0, "settle_window": 0.0, "window": 2}
    return an_approved_plan(world.a_channel(settings=provider.settings | quick | settings), rows=rows, event="case")


def wait_for(what: Callable[[], Any], why: str, *, meanwhile: Callable[[], None] = lambda: None, seconds: float = 90) -> Any:
    ends = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < ends, f"waited in vain for {why}"
        meanwhile()
        time.sleep(0.02)
    return found


def state_of(n: int) -> str:
    effect = Effect.objects.filter(target=f"case-{n}@example.com").order_by("-attempt").first()
    return effect.state if effect else ""


def holder_of(target: str) -> int:
    """The process that reserved this row: the pool child, as the ledger names it."""
    return int(Effect.objects.get(target=target).worker.split(":")[1])


def test_br_02_a_worker_child_is_killed_for_memory(stack: Stack, provider: FakeHttp, journal: Journal) -> None:
    """Row 4 after the provider accepted it, row 7 after its claim was committed and before the first byte."""
    killed: list[int] = []

    def kill_at_the_fourth(body: dict[str, Any]) -> None:
        journal._note_post(body)
        if body["to"] == "case-4@example.com":
            [(worker,)] = journal.ask("SELECT worker FROM effects_effect WHERE target = %s", body["to"])
            killed.append(int(worker.split(":")[1]))
            os.kill(killed[0], signal.SIGKILL)

    provider.before_answer = kill_at_the_fourth
    stack.environment["SIGNOFF_FAILPOINTS"] = "calling=case-7@example.com:stop"
    stack.environment["HASTY_POOL"] = "prefork"
    parent = stack.start("worker").pid
    stack.start("beat")
    plan = a_plan(provider, 10)
    finished: list[bool] = []

    def look() -> None:
        finished.append(is_settled(counts(plan)))

    wait_for(lambda: state_of(7) == "pending", "the claim of row 7", meanwhile=look)
    child = psutil.Process(holder_of("case-7@example.com"))
    wait_for(lambda: child.status() == psutil.STATUS_STOPPED, "row 7 to stand before its first byte", meanwhile=look)
    assert child.pid != parent
    child.kill()
    states = lambda: [state_of(n) for n in range(1, 11)]  # noqa: E731
    wait_for(lambda: set(states()) <= {"done", "unknown"}, "everything to settle", meanwhile=look)
    assert killed
    assert stack.children["worker"].code() is None, "the parent lives on"
    assert stack.logs("worker").count("WorkerLostError") >= 1
    assert states() == ["done"] * 6 + ["unknown"] + ["done"] * 3
    assert (provider.deliveries["case-4@example.com"], provider.calls["case-7@example.com"]) == (1, 0)
    assert broken(facts_of(plan, journal.posts)) == []
    assert not any(finished), "not shown as finished while a row is open"


def test_br_03_a_broker_that_comes_back_empty(stack: Stack, provider: FakeHttp, journal: Journal) -> None:
    """At the twentieth of fifty the broker dies and loses all it had; nobody does anything but start it again."""
    broker = stack.embedded.valkey
    assert broker is not None
    stack.start("worker")
    stack.start("beat")
    plan = a_plan(provider, 50, rate=10.0)
    wait_for(lambda: sum(provider.deliveries.values()) >= 20, "twenty deliveries")
    assert broker.child
    broker.child.kill()
    shutil.rmtree(broker.data)
    time.sleep(2)
    stack.services()
    wait_for(lambda: counts(plan)["done"] == 50, "the last of fifty")
    assert provider.deliveries == {row.target: 1 for row in world.rows_of(plan)}
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


def test_br_06_everything_is_killed_at_forty_and_again_at_seventy(
    stack: Stack, provider: FakeHttp, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred rows in batches of 25: neither skipped nor sent again, through two kills, a pause and a resumption."""
    monkeypatch.setattr(voting, "CHUNK", 25)
    provider.otherwise = accepts_slowly(0.03)
    stack.commands["worker"] = stack.commands["worker"].replace("--concurrency 2", "--concurrency 4")
    alice, dana = world.acting(world.alice()), world.acting(world.dana())
    plan = a_plan(provider, 100, window=4)

    def delivered() -> int:
        return sum(provider.deliveries.values())

    def look() -> None:
        figures = counts(plan)
        assert sum(figures.values()) - figures["rows"] - figures["excluded"] == 100, figures
        if is_settled(figures):
            assert Effect.objects.filter(plan_id=plan.pk, state__in=FINAL).count() >= 100

    def start() -> None:
        stack.start("worker")
        stack.start("beat")

    def kill_everything() -> None:
        for name in ("worker", "beat"):
            stack.kill(name)
        assert stack.embedded.valkey is not None
        assert stack.embedded.valkey.child is not None
        stack.embedded.valkey.child.kill()
        stack.embedded.start()

    start()
    wait_for(lambda: delivered() >= 40, "forty deliveries")
    kill_everything()
    look()
    start()
    wait_for(lambda: delivered() >= 50, "ten more", meanwhile=look)
    halting.pause(plan, by=alice, reason="one moment")
    time.sleep(1.0)
    paused_at = delivered()
    time.sleep(1.0)
    assert delivered() == paused_at
    halting.resume(plan, by=alice)
    wait_for(lambda: delivered() >= 70, "seventy deliveries", meanwhile=look)
    kill_everything()
    start()

    def moving() -> bool:
        figures = counts(plan)
        return bool(figures["waiting"] or figures["pending"] or figures["failed"])

    wait_for(lambda: not moving(), "everything to settle", meanwhile=look)
    for effect in Effect.objects.filter(plan_id=plan.pk, state="unknown"):  # Dana asks the provider, who has not got it
        assert not provider.deliveries[effect.target]
        rulings.resolve(effect, to=State.FAILED, by=dana, reason="not there", evidence="asked", seen="unknown", again=True)
    wait_for(lambda: counts(plan)["done"] == 100, "the last letters", meanwhile=look)
    assert len(provider.deliveries) == 100
    assert set(provider.deliveries.values()) == {1}
