"""What tests with real workers have in common: their plans, their patience, and which broker they speak to."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from approvals import tasks
from approvals.models import Plan
from config.celery import app
from tests import world
from tests.crashes.story import an_approved_plan
from tests.fakes import FakeHttp


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
