"""The same promises with the real workers, and real kills."""

import os
import signal
import time
from typing import Any

import psutil
import pytest

from approvals import halting, voting
from approvals.coverage import counts, is_settled
from config.stack import Stack
from effects import rulings
from effects.models import Effect
from effects.states import FINAL, State
from tests import world
from tests.crashes.invariants import broken
from tests.crashes.processes import a_plan, wait_for
from tests.crashes.story import Journal, facts_of
from tests.fakes import FakeHttp, accepts_slowly

pytestmark = [pytest.mark.crashes, pytest.mark.django_db(transaction=True)]


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
