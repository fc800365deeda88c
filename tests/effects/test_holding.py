"""Pauses by hand: what each holds, that it holds nobody else, and that the record tells who."""

import io

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.errors import LostRace, Refused
from approvals import dispatch
from approvals.models import Plan
from audit.models import Entry
from effects import holding
from effects.models import Pause
from effects.workplace import Workplace
from tests import world
from tests.approvals.sends import approved, due_again, no_broker, work  # noqa: F401
from tests.fakes import FakeHttp

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]


def says(*words: str) -> str:
    out = io.StringIO()
    call_command("effects", *words, stdout=out)
    return out.getvalue()


def hold(subject: str, plan: Plan) -> None:
    dana = world.acting(world.dana())
    if subject == "channel":
        holding.pause_channel(plan.channel, by=dana, reason="wrong sender")
    elif subject == "workspace":
        holding.pause_workspace(plan.workspace, by=dana, reason="somebody broke in")
    else:
        says("pause", "--reason", "the database is being moved")


def go_on(subject: str, plan: Plan) -> None:
    dana = world.acting(world.dana())
    if subject == "channel":
        holding.resume_channel(plan.channel, by=dana, reason="mended")
    elif subject == "workspace":
        holding.resume_workspace(plan.workspace, by=dana, reason="mended")
    else:
        says("resume", "--reason", "moved")


@pytest.mark.parametrize("subject", ["channel", "workspace", "everything"])
def test_nothing_starts_until_it_is_let_go_on(workplace: Workplace, subject: str) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
        hold(subject, plan)
        due_again(plan)
        assert dispatch.due_chunks() == []
        work(workplace, plan)
        assert not provider.calls
        go_on(subject, plan)
        work(workplace, plan)
        assert sum(provider.deliveries.values()) == 3
    acts = list(Entry.objects.filter(act__in=(f"{subject} paused", f"{subject} resumed")).values_list("act", "actor_kind"))
    assert acts == [(f"{subject} paused", acts[0][1]), (f"{subject} resumed", acts[0][1])]
    assert acts[0][1] == ("command" if subject == "everything" else "human")


@pytest.mark.parametrize("subject", ["channel", "workspace"])
def test_a_pause_holds_nobody_else(workplace: Workplace, subject: str) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
        if subject == "channel":
            other = world.a_channel(slug="other", settings=provider.settings)
            holding.pause_channel(other, by=world.acting(world.dana()), reason="not this one")
        else:
            charlie = world.acting(world.charlie())
            holding.pause_workspace(world.a_workspace("globex"), by=charlie, reason="not this one")
        work(workplace, plan)
        assert sum(provider.deliveries.values()) == 3


def test_a_pause_runs_out_by_itself(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        plan = approved(provider)
        pause = holding.pause_channel(plan.channel, by=world.acting(world.dana()), reason="a moment", minutes=5)
        assert 290 < (pause.until - pause.started_at).total_seconds() <= 300
        Pause.objects.update(until=pause.started_at)
        work(workplace, plan)
        assert sum(provider.deliveries.values()) == 3


def test_the_kill_switch_is_on_every_workspaces_record_and_thrown_once() -> None:
    world.a_workspace(), world.a_workspace("globex")
    assert "until 2" in says("pause", "--reason", "r", "--minutes", "30")
    assert "effects resume" in says("pause", "--reason", "for good")
    with pytest.raises(CommandError, match="paused already, by manage"):
        says("pause", "--reason", "again")
    with pytest.raises(CommandError, match="between 1 and"):
        says("pause", "--reason", "r", "--minutes", "0")
    says("resume", "--reason", "over")
    with pytest.raises(CommandError, match="not paused"):
        says("resume", "--reason", "again")
    assert Entry.objects.filter(act="everything paused").count() == 4
    assert Entry.objects.filter(act="everything resumed").values("workspace").distinct().count() == 2


@pytest.mark.parametrize("who", ["ed", "charlie"])
def test_it_refuses_who_may_not_halt(who: str) -> None:
    channel = world.a_channel()
    by = world.acting(getattr(world, who)())
    for act in (holding.pause_channel, holding.resume_channel):
        with pytest.raises(Refused):
            act(channel, by=by, reason="mischief")
    for act in (holding.pause_workspace, holding.resume_workspace):
        with pytest.raises(Refused):
            act(channel.workspace, by=by, reason="mischief")
    assert not Pause.objects.exists()


def test_it_needs_a_reason_and_something_to_lift() -> None:
    channel, dana = world.a_channel(), world.acting(world.dana())
    with pytest.raises(Refused, match="Say why"):
        holding.pause_channel(channel, by=dana, reason=" ")
    with pytest.raises(LostRace, match="not paused"):
        holding.resume_channel(channel, by=dana, reason="go")
