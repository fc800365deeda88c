"""The guide for providers (`docs/callbacks.md`): its example signs what our door takes, and its table is that of the code."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from effects import callbacks
from effects.models import Callback
from effects.news import Kind, Outcome, Told, weigh
from effects.states import State
from tests import world
from tests.callers import SECRET, body_about, takes_callbacks

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "callbacks.md").read_text()


@pytest.mark.django_db(transaction=True)
def test_its_example_is_taken(live_server: LiveServer) -> None:
    takes_callbacks(world.a_channel())
    effect = world.an_effect("unknown")
    [example] = re.findall(r"```python\n(.+?)```", GUIDE, re.DOTALL)
    written: dict[str, Any] = {}
    exec(example, written)
    call_back: Callable[..., int] = written["call_back"]
    told = (f"{live_server.url}/callbacks/acme/letters/", SECRET, "evt-1", body_about(effect, receipt="r-1"))
    assert [call_back(*told), call_back(*told)] == [202, 200]
    assert Callback.objects.get().receipt == "r-1"


def said(kind: Kind, state: State, **fields: bool) -> str:
    """A cell of the table."""
    finding = weigh(Told(kind, state, receipt="r", **fields))
    if finding is None:
        return "waits, on the desk" if state is State.UNKNOWN else "waits"
    if finding.to:
        letter = {"pending done": "b", "pending failed": "c", "unknown done": "f"}[f"{state} {finding.to}"]
        return f"`{finding.to}` ({letter})" + " with a receipt" * (finding.to is State.DONE)
    return {Outcome.AGREED: "agrees", Outcome.CONTRARY: "**news**"}[finding.outcome]


def test_its_table_is_that_of_the_code() -> None:
    rows = {
        "`pending`, the call under way": [(State.PENDING, {})],
        "`pending`, past its deadline, no reply kept": [(State.PENDING, {"is_left": True})],
        "`pending`, accepted to be decided later (202)": [(State.PENDING, {"is_awaited": True})],
        "`unknown`": [(State.UNKNOWN, {})],
        "`done`": [(State.DONE, {})],
        "`failed`, `revoked`, `stranded`": [(state, {}) for state in (State.FAILED, State.REVOKED, State.STRANDED)],
    }
    for name, cases in rows.items():
        for state, fields in cases:
            cells = " | ".join(said(kind, state, **fields) for kind in Kind)
            assert f"| {name} | {cells} |" in GUIDE


def test_it_names_every_field_and_the_limits() -> None:
    for field in callbacks.Told.model_fields:
        assert re.search(rf"^\| .*`{field}`", GUIDE, re.MULTILINE), field
    assert f"at most {callbacks.MOST} of them" in GUIDE
