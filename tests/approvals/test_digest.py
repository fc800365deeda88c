"""The digest covers all that a reviewer decides on, and nothing that may change meanwhile."""

import hashlib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.digest import PlanShape, RowShape, plan_digest

PLAN = PlanShape(
    title="Spring sale",
    rationale="It is spring.",
    tool="send_email",
    channel_id=1,
    channel="letters",
    provider="smtp",
    event_id="spring-sale",
    scope="",
    currency="",
    version=1,
    settings={"from": "us@acme.example", "timeout": 30.0},
)
ROWS = [RowShape(1, "ana@example.com", "v1:a", 0, None, "sha256:1"), RowShape(2, "bo@example.com", "v1:b", 0, 5, "sha256:2")]


def changed(value):
    if isinstance(value, dict):
        return value | {"from": "them@evil.example"}
    if isinstance(value, int):
        return value + 1
    return 0 if value is None else f"{value}x"


@pytest.mark.parametrize("name", [field.name for field in fields(PlanShape)])
def test_every_field_of_the_plan_counts(name):
    other = replace(PLAN, **{name: changed(getattr(PLAN, name))})
    assert plan_digest(other, ROWS) != plan_digest(PLAN, ROWS)


@pytest.mark.parametrize("name", [field.name for field in fields(RowShape)])
def test_every_field_of_a_row_counts(name):
    other = [replace(ROWS[0], **{name: changed(getattr(ROWS[0], name))}), ROWS[1]]
    assert plan_digest(PLAN, other) != plan_digest(PLAN, ROWS)


def test_order_and_number_of_rows_count():
    assert len({plan_digest(PLAN, rows) for rows in (ROWS, ROWS[::-1], ROWS[:1], [], [*ROWS, ROWS[0]])}) == 5


@pytest.mark.parametrize("name", ["timeout", "settle_window", "window", "max_attempts", "rate"])
def test_how_fast_a_channel_sends_does_not_count(name):
    assert plan_digest(replace(PLAN, settings={**PLAN.settings, name: 7}), ROWS) == plan_digest(PLAN, ROWS)


def test_no_amount_and_none_of_money_are_two_things():
    assert plan_digest(PLAN, [replace(ROWS[0], amount_minor=0)]) != plan_digest(PLAN, [ROWS[0]])


@given(st.lists(st.text(), min_size=3, max_size=3), st.lists(st.text(), min_size=3, max_size=3))
def test_texts_that_differ_never_meet(one, other):
    first, second = (plan_digest(replace(PLAN, title=t[0], rationale=t[1], tool=t[2]), []) for t in (one, other))
    assert (first == second) == (one == other)


def test_another_implementation_agrees():
    """The layout in words: a label, then each field as its length in bytes, a colon and the field; `row` before each row."""

    def field(text: str) -> bytes:
        return str(len(text.encode())).encode() + b":" + text.encode()

    text = b"signoff plan 1"
    settings = '{"from":"us@acme.example"}'
    for part in ("Spring sale", "It is spring.", "send_email", "1", "letters", "smtp", settings, "spring-sale", "", "", "1"):
        text += field(part)
    for parts in (
        ("1", "ana@example.com", "v1:a", "0", "", "sha256:1", ""),
        ("2", "bo@example.com", "v1:b", "0", "5", "sha256:2", ""),
    ):
        text += b"row" + b"".join(field(part) for part in parts)
    assert plan_digest(PLAN, ROWS) == f"sha256:{hashlib.sha256(text).hexdigest()}"
