"""The rows of a plan taken away as CSV, and brought back."""

import csv
import io
from typing import Any

import psutil
import pytest
from django.test import Client

from approvals import checks, exports, plans, voting
from approvals.exports import HEADER, exported
from approvals.freezing import digest_now
from approvals.intake import read_csv
from approvals.models import Plan
from audit.models import Entry
from tests import world
from tests.pages.test_lists import FORMULAS

AWKWARD = [
    *(f"{start}1+1, and more" for start in FORMULAS if start not in "\t\r\n"),
    "'=1", "''+1", "it's", 'say "no", twice', "two\r\nlines", "a lone \r and a \t", " blanks ", "Grüße 👩‍👩‍👧 \u202eabc", "\\N", "'",
]  # fmt: skip


def a_plan_of_awkward_rows() -> Plan:
    """Every column of every kind, with texts that a spreadsheet would take for something else."""
    rows = [
        world.a_row(
            n, target=f" Customer{n}@Example.com ", subject=text.replace("\r\n", " ").replace("\r", " "), text=text, html=f"{text}<p>",
            amount_minor=[-500, 0, 1999, None][n % 4], payload=[text, {"a": text, "b": [1.5, -0.25, None]}, -5, "=1", None][n % 5],
            record={"note": text} if n % 2 else None,
        )
        for n, text in enumerate(AWKWARD, 1)
    ]  # fmt: skip
    return world.a_draft(rows, currency="EUR")


def taken(browser: Client, plan: Plan) -> bytes:
    """The file, as it comes."""
    answer: Any = browser.get(f"/acme/plans/{plan.pk}/export/")
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="acme-plan-{plan.pk}.csv"'
    return b"".join(answer.streaming_content)


def read(file: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.decode("utf-8-sig"), newline="")))


def test_br_21_export_then_import_gives_back_the_original_text(alice: Client) -> None:
    plan = a_plan_of_awkward_rows()
    file = taken(alice, plan)
    again = world.a_draft(0, currency="EUR")
    assert plans.load(again, read_csv([file]), token=again.token) == len(AWKWARD)
    handed_in = (
        "position",
        "target_typed",
        "target",
        "key",
        "subject",
        "text",
        "html",
        "payload",
        "record",
        "amount_minor",
        "content_digest",
    )
    for before, after in zip(world.rows_of(plan), world.rows_of(again), strict=True):
        assert [getattr(after, name) for name in handed_in] == [getattr(before, name) for name in handed_in]


def test_br_21_text_is_inert_and_numbers_stay_numbers(alice: Client) -> None:
    rows = read(taken(alice, a_plan_of_awkward_rows()))
    for row in rows:
        assert not any(row[name].startswith(tuple(FORMULAS)) for name in HEADER if name != "amount_minor")
    assert [row["amount_minor"] for row in rows[:4]] == ["0", "1999", "", "-500"]
    assert rows[0]["text"] == "'=1+1, and more"


def test_the_file_says_what_became_of_each_row(alice: Client) -> None:
    plan = world.a_proposed_plan(4)
    voting.exclude(plan, by=world.acting(world.alice()), positions=[3], reason="=They asked us to stop.")
    one, two, *_ = world.rows_of(plan)
    world.an_effect("failed", row=one, reason="no such mailbox")
    world.an_effect("done", row=two, receipt="+r-77")
    told = [(row["outcome"], row["attempt"], row["receipt"], row["why"]) for row in read(taken(alice, plan))]
    assert told == [
        ("failed", "1", "", "no such mailbox"), ("done", "1", "'+r-77", "done, as the test tells"),
        ("excluded", "", "", "'=They asked us to stop."), ("waiting", "", "", ""),
    ]  # fmt: skip


def test_who_took_it_away_stands_in_the_record(alice: Client) -> None:
    plan = world.a_proposed_plan(1)
    taken(alice, plan)
    entry = Entry.objects.get(act="plan exported")
    assert (entry.object_id, entry.actor_id) == (plan.pk, world.alice().pk)
    assert "Plan exported" in alice.get(f"/acme/plans/{plan.pk}/").content.decode()


def test_it_refuses_charlie(charlie: Client) -> None:
    plan = world.a_proposed_plan(1)
    assert charlie.get(f"/acme/plans/{plan.pk}/export/").status_code == 404
    assert charlie.get(f"/globex/plans/{plan.pk}/export/").status_code == 404


def test_an_operator_is_not_offered_it(alice: Client, dana: Client) -> None:
    plan = world.a_proposed_plan(1)
    assert f"/acme/plans/{plan.pk}/export/" in alice.get(f"/acme/plans/{plan.pk}/").content.decode()
    assert f"/acme/plans/{plan.pk}/export/" not in dana.get(f"/acme/plans/{plan.pk}/").content.decode()


def test_an_apostrophe_in_an_agents_own_file_stays(db: None) -> None:
    draft = world.a_draft(0)
    plans.load(draft, read_csv([b"target,text\nana@example.com,'=1\n"]), token=draft.token)
    assert world.rows_of(draft)[0].text == "'=1"


def test_br_23_an_export_takes_as_many_queries_as_it_has_pages(
    alice: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(exports, "AT_A_TIME", 3)
    plan = world.a_proposed_plan(7)
    with django_assert_num_queries(3):
        assert [row[0] for row in exported(plan)] == [1, 2, 3, 4, 5, 6, 7]


def test_br_23_large_letters_are_checked_frozen_and_exported_a_few_at_a_time(db: None) -> None:
    """All of them would take 60 MB, twice: as the database gave them and as text."""
    text = "your order has left our house today. " * 6_750
    plan = world.a_draft([world.a_row(n, text=text) for n in range(240)])
    process, seen = psutil.Process(), [0]
    before = process.memory_info().rss
    checks.run(plan)
    digest_now(plan)
    for _ in exported(plan):
        seen.append(process.memory_info().rss - before)
    assert len(seen) == 241
    assert max(seen) < 90_000_000


def test_br_23_the_approval_is_a_digest_and_no_list(alice: Client) -> None:
    """The form of a long plan is as large as that of a short one."""
    forms = []
    for count in (2, 300):
        plan = world.a_proposed_plan(count, event_id=f"event {count}")
        html = alice.get(f"/acme/plans/{plan.pk}/").content.decode()
        form = html.split(f'action="/acme/plans/{plan.pk}/approval/"')[1].split("</form>")[0]
        forms.append(form.count("<input"))
        assert plan.digest in form
        assert len(form) < 4096
    assert forms[0] == forms[1]
