"""Rows come into a draft all or none, each with its key, and whatever is wrong is told by line and field."""

import json

import psutil
import pytest
from django.db import connection

from approvals import loading, plans
from approvals.incoming import NewRow, RowError
from approvals.intake import RowsRefused, read_csv, read_ndjson
from approvals.models import Plan, Row
from audit.models import Entry
from effects.content import Content
from effects.keys import effect_key
from tests.world import a_channel, a_draft, a_proposed_plan, a_row, a_token, a_workspace, bob, charlie, dana, rows_of

pytestmark = pytest.mark.django_db


def refusal(plan: Plan, rows) -> RowsRefused:
    """What a load is refused with; nothing of it may have stayed."""
    before = Row.objects.count()
    with pytest.raises(RowsRefused) as caught:
        plans.load(plan, rows, token=plan.token)
    plan.refresh_from_db()
    assert Row.objects.count() == before == plan.row_count
    return caught.value


def said(plan: Plan, rows) -> list[tuple[int, str, str]]:
    return [(error.line, error.field, error.error) for error in refusal(plan, rows).errors]


def test_rows_stand_in_the_order_in_which_they_came():
    plan = a_draft(rows=3)
    assert [(row.position, row.target) for row in rows_of(plan)] == [
        (1, "customer1@example.com"),
        (2, "customer2@example.com"),
        (3, "customer3@example.com"),
    ]
    assert plan.row_count == 3


def test_a_second_load_appends():
    plan = a_draft(rows=2)
    assert plans.load(plan, [a_row(8), a_row(9)], token=plan.token) == 2
    assert [row.position for row in rows_of(plan)] == [1, 2, 3, 4]
    assert [row.target for row in rows_of(plan)][2:] == ["customer8@example.com", "customer9@example.com"]


def test_a_row_carries_the_key_of_event_tool_target_amount_and_scope():
    plan = a_draft([a_row(target=" ANA@Example.COM ", amount_minor=1999)], currency="eur", scope="north")
    (row,) = rows_of(plan)
    assert row.target == "ana@example.com"
    assert row.target_typed == " ANA@Example.COM "
    assert row.key == effect_key("spring-sale", "send_email", "ana@example.com", 1999, "acme/EUR/north")
    assert row.epoch == 0


def test_two_texts_for_one_target_have_one_key_and_two_digests():
    one, other = a_draft([a_row(text="Dear you, the first draft.")]), a_draft([a_row(text="Dear you, the second draft.")])
    (first,), (second,) = rows_of(one), rows_of(other)
    assert first.key == second.key
    assert first.content_digest != second.content_digest


def test_the_same_row_in_another_workspace_has_another_key():
    theirs = a_draft(1, token=a_token(a_workspace("globex")))
    assert rows_of(a_draft(1))[0].key != rows_of(theirs)[0].key


AWKWARD = [
    {"n": 1e22, "m": 1.0, "z": -0.0, "t": 1e-7, "big": 10**30, "s": "é\u2028\\u0000", "l": [1, [2.50]], "": None},
    [5e-324, 1.7976931348623157e308, 0.1, 123456789012345680.0, "\x01", True],
    "text", 0, False,
]  # fmt: skip


@pytest.mark.parametrize("payload", AWKWARD)
def test_the_digest_of_a_payload_is_the_same_after_the_database_kept_it(payload):
    (row,) = rows_of(a_draft([a_row(payload=payload)]))
    kept = Content(row.target, row.subject, row.text, row.html, row.payload, row.amount_minor)
    assert kept.digest() == row.content_digest


def test_the_digest_of_a_letter_is_the_same_after_the_database_kept_it():
    letter = a_row(subject="Grüße \\N \t", text="a\r\nb\\.\n\\N\n", html="<p>\\t\u202e</p>", record={"x": [1.5]})
    (row,) = rows_of(a_draft([letter]))
    assert Content(row.target, row.subject, row.text, row.html).digest() == row.content_digest
    assert (row.subject, row.text, row.html, row.record) == (letter.subject, letter.text, letter.html, letter.record)


def test_all_errors_are_told_at_once_with_line_and_field():
    lines = [
        b'{"target": "ana@example.com", "text": "Dear Ana, hello."}',
        b'{"text": "no target"}',
        b'{"target": "two@example.com, three@example.com", "text": 5, "colour": "red"}',
        b"",
        b"{not json",
        b'{"target": "caf\xff@example.com"}',
        b'{"target": "bo,b@example.com"}',
    ]
    smtp = a_draft(channel=a_channel(slug="post", provider="smtp"))
    told = said(smtp, read_ndjson([b"\n".join(lines)]))
    assert [(line, field) for line, field, _ in told] == [
        (2, "target"), (3, "text"), (3, "colour"), (5, ""), (6, ""), (7, "target"),
    ]  # fmt: skip
    assert told[0][2] == "is missing"
    assert "must be text" in told[1][2]
    assert "not a field of a row" in told[2][2]
    assert "not JSON" in told[3][2]
    assert "not UTF-8: byte 16" in told[4][2]
    assert "one plain address" in told[5][2]


def test_the_first_hundred_errors_are_told_and_the_rest_counted():
    found = refusal(a_draft(), (RowError(n, "text", "must be text") for n in range(1, 251)))
    assert len(found.errors) == 100
    assert found.count == 250
    assert found.errors[-1].line == 100


def test_a_bad_load_leaves_the_rows_of_the_good_one_before():
    plan = a_draft(rows=2)
    refusal(plan, [a_row(3), RowError(2, "text", "must be text")])
    assert len(rows_of(plan)) == 2


@pytest.mark.parametrize("subject", ["Hello\r\nBcc: all@example.com", "Hello\nyou", "Hello\ryou", "Hello\0you"])
def test_r_15_a_line_break_in_a_subject_is_refused_and_names_the_row(subject):
    """Nothing of that load is kept; the same rows without that one come in."""
    draft = a_draft()
    lines = [json.dumps({"target": f"c{n}@example.com", "text": "Dear you."}) for n in range(1, 6)]
    lines[1] = json.dumps({"target": "c2@example.com", "subject": subject, "text": "Dear you."})
    ((line, field, error),) = said(draft, read_ndjson(["\n".join(lines).encode()]))
    assert (line, field) == (2, "subject")
    assert "one line" in error
    assert rows_of(draft) == []
    del lines[1]
    plans.load(draft, read_ndjson(["\n".join(lines).encode()]), token=draft.token)
    assert [row.target for row in rows_of(draft)] == [f"c{n}@example.com" for n in (1, 3, 4, 5)]


@pytest.mark.parametrize("amount", ["19.99", "1e2", "true", '"1999"', '"19.99"', "NaN", "1.0", "9223372036854775808", "[]"])
def test_br_13_an_amount_that_is_no_whole_number_of_minor_units_is_refused(amount):
    line = f'{{"target": "ana@example.com", "text": "Dear Ana.", "amount_minor": {amount}}}'
    told = said(a_draft(currency="EUR"), read_ndjson([line.encode()]))
    assert [(line, field) for line, field, _ in told] in ([(1, "amount_minor")], [(1, "")])


@pytest.mark.parametrize("cell", ["19.99", "1e2", "true", "NaN", "1.0", "9223372036854775808", "0x10", " 5", "+5", "05", "1_000"])
def test_br_13_an_amount_in_csv_is_no_whole_number_either(cell):
    told = said(a_draft(currency="EUR"), read_csv([f"target,amount_minor\nana@example.com,{cell}\n".encode()]))
    assert [(line, field) for line, field, _ in told] == [(2, "amount_minor")]


def test_a_minus_zero_is_the_zero_that_it_is():
    plan = a_draft(currency="EUR")
    plans.load(plan, read_ndjson([b'{"target": "ana@example.com", "amount_minor": -0}']), token=plan.token)
    plans.load(plan, read_csv([b"target,amount_minor\nbo@example.com,-0\n"]), token=plan.token)
    assert [row.amount_minor for row in rows_of(plan)] == [0, 0]


def test_an_amount_without_a_currency_is_refused():
    ((line, field, error),) = said(a_draft(), [a_row(amount_minor=500).at(7)])
    assert (line, field) == (7, "amount_minor")
    assert "currency" in error


def test_the_same_target_twice_in_one_load_names_both_lines():
    csv = b'target,text\nana@example.com,"one\nletter"\nbo@example.com,hello\nANA@example.com.,again\n'
    ((line, field, error),) = said(a_draft(), read_csv([csv]))
    assert (line, field) == (5, "target")
    assert "line 2" in error
    assert "ana@example.com" in error


SPELLINGS = [
    ("Ana@Example.COM", "ana@example.com"),
    ("jose\u0301@example.com", "jos\u00e9@example.com"),
    ("ana@b\u00fccher.example", "ana@xn--bcher-kva.example"),
    ("  ana@example.com ", "ana@example.com"),
    ("ana@example.com.", "ana@example.com"),
    ("\uff41na@example.com", "ana@example.com"),
]


@pytest.mark.parametrize("pair", SPELLINGS)
def test_br_12_one_person_in_two_spellings_is_one_target(pair):
    told = said(a_draft(), [a_row(target=pair[0]), a_row(target=pair[1])])
    assert [(line, field) for line, field, _ in told] == [(2, "target")]


def test_the_same_target_in_a_later_load_comes_in_and_is_left_to_the_check():
    plan = a_draft(rows=2)
    assert plans.load(plan, [a_row(1)], token=plan.token) == 1


def test_the_same_target_with_two_amounts_is_two_effects():
    rows = [a_row(amount_minor=500), a_row(amount_minor=700)]
    assert len({row.key for row in rows_of(a_draft(rows, currency="EUR"))}) == 2


def test_a_proposed_plan_takes_no_more_rows():
    plan = a_proposed_plan()
    with pytest.raises(plans.LostRace, match="draft"):
        plans.load(plan, [a_row(9)], token=plan.token)
    assert len(rows_of(plan)) == 3


def test_somebody_elses_token_loads_nothing():
    plan = a_draft()
    for token in (a_token(name="other", owner=dana()), a_token(a_workspace("globex"), owner=charlie())):
        with pytest.raises(plans.NotYours):
            plans.load(plan, [a_row()], token=token)
    assert plans.load(plan, [a_row()], token=a_token(name="newer", owner=bob())) == 1


def test_one_row_too_many_is_refused(monkeypatch):
    monkeypatch.setattr(loading, "MOST_ROWS", 3)
    plan = a_draft(rows=2)
    ((line, _, error),) = said(plan, [a_row(8).at(1), a_row(9).at(2)])
    assert line == 2
    assert "at most 3" in error


def test_a_load_stands_in_the_record():
    plan = a_draft(rows=3)
    entry = Entry.objects.get(act="rows loaded")
    assert (entry.actor_kind, entry.actor_id, entry.object_id) == ("token", plan.token_id, plan.pk)
    assert entry.after == {"added": 3, "rows": 3}


def test_br_23_a_hundred_thousand_rows_are_never_held_in_memory():
    """The list of them would take more than 150 MB; the process may grow by a fraction of that while they pass through."""
    plan, process, seen = a_draft(), psutil.Process(), []
    letter = "your order has left our house today. " * 20

    def stream():
        for n in range(100_000):
            yield f'{{"target": "c{n}@example.com", "subject": "Hello", "text": "{letter}"}}\n'.encode()
            if n % 5_000 == 0:
                seen.append(process.memory_info().rss)

    assert plans.load(plan, read_ndjson(stream()), token=plan.token) == 100_000
    assert max(seen) - seen[0] < 40_000_000
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT key), max(position) FROM approvals_row WHERE plan_id = %s", [plan.pk])
        assert cursor.fetchone() == (100_000, 100_000)


def test_a_new_row_made_in_python_is_checked_as_one_from_a_file():
    with pytest.raises(ValueError, match="one line"):
        NewRow(target="ana@example.com", subject="a\nb")
