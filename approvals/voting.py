"""The human's pen on plans: approve, reject, request changes, exclude rows. Approval freezes and cuts the plan into chunks.

Every act is one conditional write under the plan's row lock, bound to the digest that was on screen. Four eyes holds in every
role: the author of a plan, who answers for the token that proposed it, cannot approve it; a trigger repeats that rule.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.errors import LostRace, Refused
from accounts.roles import Act
from approvals.dispatch import CHUNK, chunks_are_due
from approvals.freezing import digest_now
from approvals.models import Chunk, Decision, Plan, PlanState, Row
from audit import chain
from effects.actors import Human

# The rule of a new workspace; copied into each decision, so that a later rule changes no earlier one.
RULE: dict[str, Any] = {"approvers": 1, "not_the_author": True, "expires_hours": 24}


@transaction.atomic(durable=True)
def approve(plan: Plan, *, by: Human, digest: str, reason: str = "", ticked: frozenset[str] = frozenset()) -> Decision:
    """Approve exactly what was shown: freeze the plan and make its rows due. `ticked` are the warnings acknowledged.

    Raises LostRace when somebody decided first or the digest on screen is not the plan's digest now, and Refused for one's own
    work, a blocking check, or a warning nobody ticked.
    """
    current = _open(plan, by=by, digest=digest)
    if current.author_id == by.user.pk:
        raise Refused("You answer for the agent that proposed this plan, so somebody else has to approve it.")
    if blocking := [check["text"] for check in current.checks if check["blocking"]]:
        raise Refused(f"This plan cannot be approved: {' '.join(blocking)}")
    if missing := [check["text"] for check in current.checks if check["code"] not in ticked]:
        raise Refused(f"Tick each warning to show that you saw it: {' '.join(missing)}")
    if digest_now(current) != current.digest:
        raise Refused("The rows in the database are not what was proposed. Nothing was approved; tell an operator.")
    decision = _decide(current, Decision.Kind.APPROVED, PlanState.APPROVED, by=by, reason=reason)
    _cut(current)
    transaction.on_commit(lambda: chunks_are_due.send(Plan))
    return decision


@transaction.atomic(durable=True)
def reject(plan: Plan, *, by: Human, digest: str, reason: str) -> Decision:
    """Say no, for good, with a reason that the agent is told."""
    _needs(reason, "Say why: the agent and the record are told.")
    return _decide(_open(plan, by=by, digest=digest), Decision.Kind.REJECTED, PlanState.REJECTED, by=by, reason=reason)


@transaction.atomic(durable=True)
def request_changes(plan: Plan, *, by: Human, digest: str, reason: str) -> Decision:
    """Ask the agent for another version; this one is closed."""
    _needs(reason, "Say what should change: the agent is told.")
    return _decide(
        _open(plan, by=by, digest=digest),
        Decision.Kind.CHANGES_REQUESTED,
        PlanState.CHANGES_REQUESTED,
        by=by,
        reason=reason,
    )


@transaction.atomic(durable=True)
def exclude(plan: Plan, *, by: Human, positions: Iterable[int], reason: str) -> int:
    """Leave rows out while the plan is in review; they stay shown and counted and are never sent. Returns how many.

    The plan's digest covers exclusions, so whoever had the page open must look again before they approve.
    """
    _needs(reason, "Say why these rows are left out.")
    current = _open(plan, by=by, digest=None)
    chosen = Row.objects.filter(plan=current, position__in=list(positions), excluded_reason="")
    named = list(chosen.values_list("position", "target").order_by("position"))
    if not named:
        raise Refused("Choose at least one row that is not left out already.")
    chosen.update(excluded_reason=reason)
    before = current.digest
    current.digest = digest_now(current)
    current.save(update_fields=["digest"])
    _record(
        "rows excluded", current, by=by, reason=reason,
        before={"digest": before}, after={"count": len(named), "positions": [position for position, _ in named][:1000]},
    )  # fmt: skip
    return len(named)


def _open(plan: Plan, *, by: Human, digest: str | None) -> Plan:
    """The plan, locked, if it can still be decided on by this person and is what they were shown."""
    locked = Plan.objects.select_for_update(of=("self",)).select_related("channel")
    current = locked.get(pk=plan.pk, workspace_id=by.workspace_id)
    if not by.may(Act.DECIDE):
        raise Refused("Your role does not decide on plans.")
    if current.state != PlanState.PROPOSED:
        raise LostRace(_already(current), current)
    if current.expires_at and current.expires_at <= timezone.now():
        raise LostRace("This plan waited too long and has expired; the agent may propose it again.", current)
    if digest is not None and digest != current.digest:
        raise LostRace("This plan is not what was on your screen. Look at it again before you decide.", current)
    return current


def _already(plan: Plan) -> str:
    decision = plan.decisions.select_related("by").order_by("-id").first()
    state = plan.state.replace("_", " ")
    if decision is None:
        return f"This plan is {state} and no longer waits for a decision."
    return f"This plan is {state} already: {decision.by} decided on {decision.at:%d %B at %H:%M:%S} UTC."


def _decide(plan: Plan, kind: Decision.Kind, state: PlanState, *, by: Human, reason: str) -> Decision:
    decision = Decision.objects.create(plan=plan, kind=kind, by=by.user, digest=plan.digest, reason=reason, rule=RULE)
    expires = timezone.now() + timedelta(hours=RULE["expires_hours"])
    moved = Plan.objects.filter(pk=plan.pk, state=PlanState.PROPOSED).update(
        state=state, decided_at=Now(), expires_at=expires if state == PlanState.APPROVED else None
    )
    if moved != 1:
        raise LostRace(_already(plan), plan)
    _record(
        f"plan {kind.label.lower()}", plan, by=by, reason=reason,
        before={"state": PlanState.PROPOSED}, after={"state": state, "rule": RULE},
    )  # fmt: skip
    return decision


def _cut(plan: Plan) -> None:
    """One chunk for every CHUNK rows, due now."""
    Chunk.objects.bulk_create(
        Chunk(plan=plan, lo=lo, hi=min(lo + CHUNK - 1, plan.row_count), due_at=Now())
        for lo in range(1, plan.row_count + 1, CHUNK)
    )


def _needs(reason: str, advice: str) -> None:
    if not reason.strip():
        raise Refused(advice)


def _record(
    act: str,
    plan: Plan,
    *,
    by: Human,
    reason: str,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    chain.append(
        act,
        workspace_id=plan.workspace_id,
        by=by.actor,
        on=("plan", plan.pk, plan.title),
        reason=reason,
        before=before,
        after=after,
        digest=plan.digest,
    )
