"""Pause, resume and stop: a person's hand on an approved plan. Workers look between windows."""

from django.db import transaction
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.roles import Act
from approvals.dispatch import chunks_are_due
from approvals.models import Plan, PlanState
from audit import chain
from effects.actors import Human
from effects.models import Pause
from effects.pausing import EVERYTHING, in_force, of_channel, of_workspace


def subject_of(plan: Plan) -> str:
    """The plan as a pause names it."""
    return f"plan:{plan.pk}"


def pauses(plan: Plan) -> list[Pause]:
    """The pauses in force on this plan, its channel, its workspace or everything, oldest first."""
    return list(in_force([subject_of(plan), of_channel(plan.channel_id), of_workspace(plan.workspace_id), EVERYTHING]))


@transaction.atomic(durable=True)
def pause(plan: Plan, *, by: Human, reason: str) -> Pause:
    """Start nothing more of this plan until somebody resumes it. Calls already under way end as they end."""
    _needs_a_reason(reason)
    current = _approved(plan, by)
    if in_force([subject_of(plan)]).exists():
        raise LostRace("This plan is paused already.", current)
    started = Pause.objects.create(
        workspace_id=plan.workspace_id, subject=subject_of(plan), reason=reason, started_by=by.actor.name
    )
    _record("plan paused", plan, by=by, reason=reason)
    return started


@transaction.atomic(durable=True)
def resume(plan: Plan, *, by: Human, reason: str = "") -> None:
    """Lift the pauses of this plan (not those of its channel or workspace)."""
    current = _approved(plan, by)
    lifted = in_force([subject_of(plan)]).update(lifted_by=by.actor.name, lifted_at=Now())
    if not lifted:
        raise LostRace("This plan is not paused.", current)
    plan.chunks.filter(due_at__isnull=False).update(due_at=Now())
    transaction.on_commit(lambda: chunks_are_due.send(Plan))
    _record("plan resumed", plan, by=by, reason=reason)


@transaction.atomic(durable=True)
def stop(plan: Plan, *, by: Human, reason: str) -> None:
    """Start nothing more of this plan, ever. What is under way ends as it ends; what waits is never sent."""
    _needs_a_reason(reason)
    current = _approved(plan, by)
    if Plan.objects.filter(pk=plan.pk, state=PlanState.APPROVED).update(state=PlanState.STOPPED) != 1:
        raise LostRace("Somebody was first.", current)
    plan.chunks.update(due_at=None)
    _record("plan stopped", plan, by=by, reason=reason, before={"state": "approved"}, after={"state": "stopped"})


def _approved(plan: Plan, by: Human) -> Plan:
    """The plan, locked, if it is approved and this person may hold it."""
    if not by.may(Act.HALT):
        raise Refused("Your role does not pause or stop plans.")
    current = Plan.objects.select_for_update().get(pk=plan.pk, workspace_id=by.workspace_id)
    if current.state != PlanState.APPROVED:
        raise LostRace(f"This plan is {current.state.replace('_', ' ')}; only an approved plan can be held.", current)
    return current


def _needs_a_reason(reason: str) -> None:
    if not reason.strip():
        raise Refused("Say why: the reason stands in the record.")


def _record(
    act: str,
    plan: Plan,
    *,
    by: Human,
    reason: str,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> None:
    chain.append(
        act,
        workspace_id=plan.workspace_id,
        by=by.actor,
        on=("plan", plan.pk, plan.title),
        reason=reason,
        before=before,
        after=after,
    )
