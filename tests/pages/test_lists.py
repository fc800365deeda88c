"""Lists: their filters, their pages, their exports, and that none grows in queries."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts import paging
from audit.cells import cell, text_of
from audit.models import Entry
from effects import queries, rulings
from effects.models import Pause
from effects.queries import Search
from tests import world


def htmx(target: str) -> dict[str, Any]:
    return {"headers": {"HX-Request": "true", "HX-Target": target}}


def some_effects(count: int) -> None:
    for number in range(count):
        world.an_effect("done" if number % 2 else "failed", target=f"target{number}@example.com")


def an_epoch(reason: str = "Wrong prices.", target: str = "customer1@example.com") -> None:
    rulings.open_epoch(world.an_effect("done", target=target), by=world.acting(world.dana()), reason=reason, seen_epoch=0)


LISTS: dict[str, Callable[[int], Any]] = {
    "plans": lambda count: [world.a_draft(1, event_id=f"{count}-{number}") for number in range(count)],
    "runs": lambda count: [world.a_run() for _ in range(count)],
    "effects": some_effects,
    "audit": lambda count: [world.a_draft(0, event_id=f"{count}-{number}") for number in range(count)],
    "epochs": lambda count: [an_epoch(target=f"t{count}-{number}@example.com") for number in range(count)],
    "inbox": lambda count: [world.a_proposed_plan(1, event_id=f"{count}-{number}") for number in range(count)],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_longer_list_takes_no_more_queries(name: str, dana: Client, queries_of: Any) -> None:
    LISTS[name](2)
    few = queries_of(dana, f"/acme/{name}/")
    if name == "effects":
        for number in range(100, 160):
            world.an_effect("done", target=f"target{number}@example.com")
    else:
        LISTS[name](55)
    assert queries_of(dana, f"/acme/{name}/") == few


@pytest.mark.parametrize("name", ["plans", "runs", "effects", "audit", "epochs", "inbox", "unknown", "channels", "people"])
def test_an_empty_workspace_has_good_pages(name: str, dana: Client) -> None:
    html = dana.get(f"/acme/{name}/").content.decode()
    assert "<h1>" in html


def test_effects_are_found_by_each_part(dana: Client) -> None:
    plan = world.a_proposed_plan(1, run_id="42")
    ours = world.an_effect("failed", row=world.rows_of(plan)[0])
    other = world.an_effect("done", target="other@example.net")
    channel = f"state=failed&channel={ours.channel.slug}"
    for asked in (channel, "target=CUSTOMER1", f"key={ours.key}", f"plan={plan.pk}", "run=42", "state=failed"):
        html = dana.get(f"/acme/effects/?{asked}", **htmx("ledger")).content.decode()
        assert ours.target in html, asked
        assert other.target not in html, asked
    assert "does not narrow the list" in dana.get("/acme/effects/?plan=abc").content.decode()


def test_a_search_looks_through_a_stretch_and_says_so(dana: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "STRETCH", 3)
    old = world.an_effect("done", target="needle@example.com")
    for number in range(5):
        world.an_effect("done", target=f"hay{number}@example.com")
    page, stretched = queries.ledger(old.workspace_id, Search(target="needle"), after=None)
    assert (page.rows, stretched) == ([], True)
    assert "Look further back" in dana.get("/acme/effects/?target=needle").content.decode()
    page, stretched = queries.ledger(old.workspace_id, Search(target="needle"), after=page.more)
    assert (page.rows, stretched) == ([old], False)


def test_a_search_in_the_record_goes_by_stretches_too(ed: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "STRETCH", 3)
    world.a_proposed_plan(1)
    for number in range(5):
        world.a_draft(0, event_id=f"later {number}")
    first = ed.get("/acme/audit/?act=proposed")
    assert first.context["page"].rows == []
    assert "Nothing in this stretch" in first.content.decode()
    second = ed.get(f"/acme/audit/?act=proposed&after={first.context['page'].more}")
    assert [entry.act for entry in second.context["page"].rows] == ["plan proposed"]
    assert not ed.get("/acme/audit/?kind=plan").context["stretched"]


@pytest.mark.parametrize("cursor", ["0", "x", "-1", "9" * 40, "٣", "1e3", ""])
def test_a_broken_cursor_does_no_harm(cursor: str, dana: Client) -> None:
    for name in ("plans", "runs", "effects", "audit", "epochs", "unknown"):
        assert dana.get(f"/acme/{name}/", {"after": cursor}).status_code == 200


def test_pages_follow_each_other_without_gap_or_repeat(dana: Client) -> None:
    made = [world.a_run(agent=f"agent-{number}") for number in range(60)]
    first = dana.get("/acme/runs/").context["page"]
    second = dana.get(f"/acme/runs/?after={first.more}").context["page"]
    assert [run.pk for run in first.rows + second.rows] == [run.pk for run in reversed(made)]
    assert second.more is None


def test_plans_are_filtered_by_state(alice: Client) -> None:
    world.a_draft(1, title="Still a draft")
    world.a_proposed_plan(1, title="Proposed already", event_id="b")
    html = alice.get("/acme/plans/?state=proposed", **htmx("plans")).content.decode()
    assert "Proposed already" in html
    assert "Still a draft" not in html


def test_epochs_say_who_what_when_and_why(ed: Client) -> None:
    an_epoch("Wrong prices.")
    html = ed.get("/acme/epochs/?person=dana").content.decode()
    for words in ("customer1@example.com", "Dana", "Wrong prices.", "receipt-"):
        assert words in html
    assert "Wrong prices." not in ed.get("/acme/epochs/?person=nobody").content.decode()


def read(answer: Any) -> list[list[str]]:
    text = b"".join(answer.streaming_content).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def test_br_21_exported_cells_never_run(ed: Client) -> None:
    reason = '=HYPERLINK("http://evil.example"), and "more"'
    an_epoch(reason)
    answer = ed.get("/acme/epochs/export/")
    assert answer["Content-Disposition"] == 'attachment; filename="acme-epochs.csv"'
    header, row = read(answer)
    assert row[header.index("reason")] == f"'{reason}"
    assert row[header.index("epoch")] == "1"
    assert Entry.objects.filter(act="epochs exported", actor_id=world.ed().pk).exists()


FORMULAS = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"]


@pytest.mark.parametrize("start", FORMULAS)
def test_br_21_text_that_starts_like_a_formula_is_guarded(start: str) -> None:
    for text in (f"{start}1", f"'{start}1", f"''{start}"):
        assert cell(text) == f"'{text}"
        assert text_of(cell(text)) == text


def test_br_21_other_text_and_numbers_stay_as_they_are() -> None:
    for text in ("a=b", "it's", "'quoted'", "''", "'", "", " =1"):
        assert cell(text) == text_of(cell(text)) == text
    assert [cell(-5), cell(2.5), cell(None)] == [-5, 2.5, None]


def test_the_record_is_filtered_and_exported_as_filtered(ed: Client) -> None:
    plan = world.a_proposed_plan(1)
    html = ed.get("/acme/audit/?act=proposed&kind=plan", **htmx("entries")).content.decode()
    assert "Plan proposed" in html
    assert "Rows loaded" not in html
    header, *rows = read(ed.get(f"/acme/audit/export/?kind=plan&number={plan.pk}"))
    assert {row[header.index("act")] for row in rows} == {"plan opened", "rows loaded", "plan proposed"}


def test_exports_are_of_this_workspace_only(ed: Client) -> None:
    world.a_draft(0, token=world.a_token(world.a_workspace("globex")), title="Secret of Globex")
    assert all("Globex" not in cell for row in read(ed.get("/acme/audit/export/")) for cell in row)


def test_the_inbox_holds_what_waits(alice: Client, bob: Client, dana: Client) -> None:
    world.a_proposed_plan(1, title="Please decide")
    effect = world.an_effect("unknown", target="lost@example.com")
    Pause.objects.create(workspace=effect.workspace, subject=f"channel:{effect.channel_id}", reason="429", started_by="machine")
    for browser in (alice, bob, dana):
        html = browser.get("/acme/inbox/").content.decode()
        for words in ("Please decide", "lost@example.com", "429"):
            assert words in html
    assert "somebody else has to decide" in bob.get("/acme/inbox/").content.decode()


def test_the_badge_counts_what_this_person_may_act_on(alice: Client, bob: Client, dana: Client) -> None:
    world.a_proposed_plan(1)
    world.an_effect("unknown", target="lost@example.com")
    world.an_effect("stranded", target="stuck@example.com")

    def badge(browser: Client) -> str:
        html = browser.get("/acme/inbox/count/", headers={"HX-Request": "true"}).content.decode()
        return html.split('id="badge-inbox"')[1].split(">")[1].split("<")[0]

    assert [badge(alice), badge(bob), badge(dana)] == ["1", "", "2"]


def test_people_and_tokens_are_listed_without_secrets(ed: Client) -> None:
    token = world.a_token()
    html = ed.get("/acme/people/").content.decode()
    assert token.name in html
    assert token.digest not in html
    assert world.secret_of(token) not in html


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tools": ["crm.search", "mail.send"], "state": "finished"}, "It called crm.search, mail.send"),
        ({"tools": None, "state": "finished"}, "never recorded"),
        ({"tools": [], "state": "running"}, "still in flight"),
        ({"tools": [], "state": "finished"}, "May be replayed"),
    ],
)
def test_a_run_says_whether_it_may_be_replayed(fields: dict[str, Any], words: str, alice: Client) -> None:
    ended = None if fields["state"] == "running" else "2026-01-01T00:00Z"
    run = world.a_run(ended_at=ended, **fields)
    assert words in alice.get(f"/acme/runs/{run.pk}/").content.decode()


def test_a_run_shows_what_it_proposed_and_did(alice: Client) -> None:
    run = world.a_run()
    plan = world.a_proposed_plan(1, run_id=str(run.pk), title="From this run")
    effect = world.an_effect("done", row=world.rows_of(plan)[0])
    html = alice.get(f"/acme/runs/{run.pk}/").content.decode()
    assert "From this run" in html
    assert effect.target in html
