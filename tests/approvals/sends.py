"""Approved plans on their way out, in tests: no broker, one call for each message."""

import pytest
from django.utils import timezone

from approvals import dispatch, tasks, voting
from approvals.coverage import counts
from approvals.models import Chunk, Plan
from effects.workplace import Workplace
from tests import world
from tests.fakes import FakeHttp


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The chunks that would have been announced; no message leaves."""
    announced: list[int] = []
    monkeypatch.setattr(tasks.look_at, "delay", announced.append)
    return announced


def approved(provider: FakeHttp, rows: int = 3, **settings: object) -> Plan:
    channel = world.a_channel(settings=provider.settings | {"timeout": 1.0, "settle_window": 0.0, "window": 8} | settings)
    plan = world.a_proposed_plan(rows, channel=channel)
    voting.approve(plan, by=world.acting(world.alice()), digest=plan.digest, ticked=all_warnings(plan))
    plan.refresh_from_db()
    return plan


def all_warnings(plan: Plan) -> frozenset[str]:
    return frozenset(check["code"] for check in plan.checks)


def work(place: Workplace, plan: Plan) -> list[int]:
    """One message for each chunk of the plan; returns the chunks that have more to do at once."""
    left: list[int] = []
    for chunk in plan.chunks.order_by("id"):
        left += place.run(dispatch.work_on(chunk.pk, place))
    return left


def figures(plan: Plan) -> dict[str, int]:
    """The figures of the closing sum that are not nought."""
    return {name: count for name, count in counts(plan).items() if count}


def due_again(plan: Plan) -> None:
    """As if the time until the next look had passed."""
    Chunk.objects.filter(plan=plan).update(due_at=timezone.now(), announced_at=None)
