"""Targets that want nothing: withheld in plans to come and in those that go out, counted, and told with the reason."""

import io
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections

from accounts.errors import LostRace, Refused
from accounts.models import Workspace
from approvals import checks, opting_out, plans, queries, voting
from approvals.models import OptOut, Plan
from audit import chain
from audit.chain import Actor
from audit.models import Entry
from effects.models import Channel, Effect
from effects.workplace import Workplace
from tests import world
from tests.approvals.sends import approved, figures, work
from tests.approvals.test_coverage import agreed
from tests.fakes import FakeHttp, answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]

WHY = "wrote to us"


def customer(n: int) -> str:
    return f"customer{n}@example.com"


def opt_out(*targets: str, channel: Channel | None = None, workspace: Workspace | None = None) -> int:
    place = workspace or world.a_workspace()
    by = world.acting(world.alice() if place.slug == "acme" else world.charlie(), place)
    return opting_out.opt_out(place, targets, by=by, reason=WHY, channel=channel)


def lift(target: str) -> None:
    opting_out.lift(OptOut.objects.get(target=target, lifted_at=None), by=world.acting(world.dana()), reason="asked for it again")


def told(plan: Plan, n: int) -> tuple[str, str]:
    row = queries.row_of(plan, n)
    assert row
    return row.figure, row.excluded_reason


def test_r_06_an_opt_out_while_the_plan_goes_out(workplace: Workplace) -> None:
    """Row 60 opts out while row 30 is being sent: nothing reaches it, it ends as excluded with its reason, and the sum adds up."""
    with FakeHttp() as provider, ThreadPoolExecutor(1) as elsewhere:

        def meanwhile(body: dict[str, Any]) -> None:
            if body["to"] == customer(30):
                elsewhere.submit(lambda: (opt_out(customer(60)), connections.close_all())).result()

        provider.before_answer = meanwhile
        plan = approved(provider, 100)
        work(workplace, plan)
        assert provider.calls[customer(60)] == 0
        assert sum(provider.deliveries.values()) == 99
    assert figures(plan) == {"rows": 100, "excluded": 1, "done": 99}
    assert agreed(plan) == {"excluded": 1, "done": 99}
    assert told(plan, 60) == ("excluded", f"opted out: {WHY}")
    assert not Effect.objects.filter(target=customer(60)).exists()
    assert plan.chunks.get().due_at is None, "the plan came to its end"


def test_an_opt_out_before_the_plan_is_a_warning_and_withholds(workplace: Workplace) -> None:
    opt_out(customer(2))
    with FakeHttp() as provider:
        plan = approved(provider, 3)
        (check,) = plan.checks
        assert (check["code"], check["blocking"], check["positions"]) == ("opted_out", False, [2])
        work(workplace, plan)
        assert provider.deliveries == {customer(1): 1, customer(3): 1}
    assert agreed(plan) == {"excluded": 1, "done": 2}


def wants_to_be_sent(plan: Plan) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT position FROM approvals_outlook WHERE plan_id = %s AND send_at IS NOT NULL ORDER BY 1", [plan.pk])
        return [position for (position,) in cursor.fetchall()]


def test_what_was_tried_before_ends_as_it_ended_and_is_not_tried_again(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours[customer(1)] = answers(429, headers="Retry-After: 30\r\n")
        plan = approved(provider, 1)
        work(workplace, plan)
    assert wants_to_be_sent(plan) == [1]
    opt_out(customer(1))
    assert wants_to_be_sent(plan) == []
    assert agreed(plan) == {"failed": 1}


def test_a_row_that_another_plan_covers_stays_covered() -> None:
    plan, other = world.a_proposed_plan(2), world.a_proposed_plan(2)
    opt_out(customer(1), customer(2))
    world.an_effect("done", row=world.rows_of(other)[0])
    assert agreed(plan) == {"covered": 1, "excluded": 1}
    assert agreed(other) == {"done": 1, "excluded": 1}


def test_a_row_that_a_reviewer_left_out_is_counted_once() -> None:
    plan = world.a_proposed_plan(3)
    voting.exclude(plan, by=world.acting(world.alice()), positions=[1], reason="A test address.")
    opt_out(customer(1), customer(2))
    assert agreed(plan) == {"excluded": 2, "waiting": 1}
    assert told(plan, 1)[1] == "A test address."


def test_lifting_reaches_plans_to_come_and_never_one_that_was_shown(workplace: Workplace) -> None:
    opt_out(customer(1))
    with FakeHttp() as provider:
        before = approved(provider, 1)
        lift(customer(1))
        work(workplace, before)
        assert not provider.calls
        assert agreed(before) == {"excluded": 1}
        after = approved(provider, 1)
        assert not after.checks
        work(workplace, after)
        assert sum(provider.deliveries.values()) == 1
    assert agreed(after) == {"done": 1}


def test_nobody_approves_as_sent_what_was_shown_as_left_out() -> None:
    """S17, of another kind: what is lifted between the look and the press stays left out of what was looked at."""
    plan, draft = world.a_proposed_plan(1), world.a_draft(1, event_id="draft")
    opt_out(customer(1))
    assert agreed(plan) == agreed(draft) == {"excluded": 1}
    lift(customer(1))
    assert agreed(world.approved(plan)) == {"excluded": 1}
    assert wants_to_be_sent(plan) == []
    assert agreed(draft) == {"waiting": 1}


def test_opting_out_after_the_plans_end_changes_nothing_of_what_is_told() -> None:
    plan = world.approved(world.a_proposed_plan(2))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE approvals_plan SET expires_at = now() - interval '1 second' WHERE id = %s", [plan.pk])
    opt_out(customer(1))
    assert agreed(plan) == {"waiting": 2}


def test_one_channel_one_workspace(workplace: Workplace) -> None:
    opt_out(customer(1), channel=world.a_channel(slug="other"))
    opt_out(customer(2), workspace=world.a_workspace("globex"))
    with FakeHttp() as provider:
        plan = approved(provider, 2)
        work(workplace, plan)
        assert sum(provider.deliveries.values()) == 2
    other = world.a_proposed_plan(1, channel=Channel.objects.get(slug="other"), event_id="other")
    assert agreed(other) == {"excluded": 1}


def test_a_target_is_resolved_as_rows_are() -> None:
    world.a_channel(slug="raw", settings={"url": "http://127.0.0.1:9/", "target_kind": "opaque"})
    world.a_channel()
    assert opt_out("  Customer1@EXAMPLE.com ") == 1, "one target, as the one channel resolves it and as the other does"
    assert agreed(world.a_proposed_plan(1)) == {"excluded": 1}
    raw = world.a_proposed_plan(
        [world.a_row(1, target="Customer1@EXAMPLE.com")], channel=Channel.objects.get(slug="raw"), event_id="raw"
    )
    assert agreed(raw) == {"excluded": 1}


def test_the_same_target_twice_is_one_opt_out_and_the_record_names_them() -> None:
    assert opt_out("ana@example.com", "", "ANA@example.com", "ben@example.com") == 2
    assert opt_out("ana@example.com") == 0
    entry = Entry.objects.get(act="targets opted out")
    assert entry.after == {"count": 2, "targets": ["ana@example.com", "ben@example.com"], "channel": "every channel"}
    assert (entry.reason, entry.actor_kind) == (WHY, "human")
    lift("ana@example.com")
    assert Entry.objects.get(act="opt-out lifted").object_name == "ana@example.com"
    assert opt_out("ana@example.com") == 1, "and once more"


@pytest.mark.parametrize(
    "typed",
    [
        "ana@example.com, ben@example.com", "ana@example.com; ben@example.com", "Ana <ana@example.com>", "ana@example.com unsubscribed",
        "mailto:ana@example.com", "ana@example.com\u200b", "\ufeffana@example.com", "ana@@example.com", "@ana",
    ],
)  # fmt: skip
def test_what_could_be_the_target_of_no_row_is_refused(typed: str) -> None:
    """It would withhold nothing, and look as if it did."""
    with pytest.raises(Refused, match="Line 1"):
        opt_out(typed)
    assert not OptOut.objects.exists()


def test_a_channel_that_is_added_later_finds_its_own() -> None:
    world.a_channel()
    opt_out("Customer1@EXAMPLE.com", "ACCOUNT-7")
    raw = world.a_channel(slug="raw", settings={"url": "http://127.0.0.1:9/", "target_kind": "opaque"})
    rows = [world.a_row(1, target="Customer1@EXAMPLE.com"), world.a_row(2, target="ACCOUNT-7"), world.a_row(3, target="@ana")]
    opt_out("@ana", channel=raw)
    assert agreed(world.a_proposed_plan(rows, channel=raw)) == {"excluded": 3}


def test_a_lift_waits_for_whoever_is_proposing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the checks called left out stays left out, however the two meet."""
    opt_out(customer(1))
    draft = world.a_draft(1)
    with ThreadPoolExecutor(1) as elsewhere:

        def checks_then_a_lift(plan: Plan) -> list[dict[str, Any]]:
            found = run(plan)
            lifts.append(elsewhere.submit(lambda: (lift(customer(1)), connections.close_all())))
            time.sleep(0.2)
            return found

        lifts: list[Future[Any]] = []
        run = checks.run
        monkeypatch.setattr(checks, "run", checks_then_a_lift)
        plan = plans.submit(draft, token=draft.token)
        assert [check["code"] for check in plan.checks] == ["opted_out"]
        lifts[0].result()
    assert agreed(world.approved(plan)) == {"excluded": 1}


def test_noting_and_lifting_at_once_overlook_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opt_out(customer(1))
    with ThreadPoolExecutor(1) as elsewhere:
        append = chain.append
        notes: list[Future[Any]] = []

        def then_somebody_notes_it(act: str, **told: Any) -> Entry:
            if act == "opt-out lifted":
                notes.append(elsewhere.submit(lambda: (opt_out(customer(1)), connections.close_all())))
                time.sleep(0.2)
            return append(act, **told)

        monkeypatch.setattr(chain, "append", then_somebody_notes_it)
        lift(customer(1))
        assert notes[0].result()[0] == 1
    assert OptOut.objects.filter(target=customer(1), lifted_at=None).count() == 1


@pytest.mark.parametrize("verb", [voting.reject, voting.request_changes])
def test_after_a_no_the_sum_stays_as_it_was_told(verb: Any) -> None:
    plan = world.a_proposed_plan(2)
    verb(plan, by=world.acting(world.alice()), digest=plan.digest, reason="No.")
    opt_out(customer(1))
    assert agreed(plan) == {"waiting": 2}


def test_a_bad_line_is_named_and_nothing_is_kept() -> None:
    with pytest.raises(Refused, match=r"Line 2: .*control character.* Nothing was kept"):
        opt_out("ana@example.com", "be\x07n")
    with pytest.raises(Refused, match="at least one"):
        opt_out("", "  ")
    assert not OptOut.objects.exists()


def test_who_may_and_who_may_not() -> None:
    place = world.a_workspace()
    for by in (world.acting(world.ed()), world.acting(world.charlie(), world.a_workspace("globex")), Actor("token", 1, "mailer")):
        with pytest.raises(Refused):
            opting_out.opt_out(place, ["ana@example.com"], by=by, reason=WHY)
    with pytest.raises(Refused, match="Say why"):
        opting_out.opt_out(place, ["ana@example.com"], by=world.acting(world.alice()), reason=" ")
    opt_out("ana@example.com")
    held = OptOut.objects.get()
    lift("ana@example.com")
    with pytest.raises(LostRace):
        opting_out.lift(held, by=world.acting(world.dana()), reason="again")


def says(*words: str, **more: Any) -> str:
    out = io.StringIO()
    call_command("optout", *words, stdout=out, **more)
    return out.getvalue()


def test_the_command_takes_a_file_and_lifts(tmp_path: Any) -> None:
    world.a_channel()
    (tmp_path / "unsubscribed.txt").write_text("ana@example.com\r\n\r\nBen@example.com\r\n", encoding="utf-8-sig")
    where = ("--workspace", "acme", "--reason", "the form on our site")
    assert says("add", "eve@example.com", "--file", str(tmp_path / "unsubscribed.txt"), *where).startswith("3 targets")
    assert says("lift", "BEN@example.com", *where).startswith("BEN@example.com is reached again")
    assert set(OptOut.objects.filter(lifted_at=None).values_list("target", flat=True)) == {"ana@example.com", "eve@example.com"}
    assert set(OptOut.objects.values_list("by", flat=True)) == {"manage.py"}
    for wrong in (
        ("lift", "ben@example.com"),
        ("add",),
        ("add", "--file", "nowhere.txt"),
        ("add", "x@example.com", "--channel", "none"),
    ):
        with pytest.raises(CommandError):
            says(*wrong, *where)
