"""What an agent may do with a plan: open it, load rows, submit it, withdraw it.

Every verb is one transaction that ends in an entry in the record. A token acts only on plans whose author answers for it:
otherwise somebody could write into a plan that they may then approve.
"""

import re
from array import array
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.models import Token, Workspace
from approvals import checks
from approvals.freezing import digest_now
from approvals.incoming import NewRow, RowError
from approvals.intake import Errors
from approvals.loading import finished, tell_duplicates
from approvals.models import Plan, PlanState
from audit import chain
from audit.chain import Actor
from effects.keys import UnusableKey, effect_key, scope_of
from effects.models import Channel
from effects.statements import read_statements

ANSWER_WITHIN = timedelta(hours=24)  # a proposed plan that nobody decided on by then has expired
REPLACEABLE = (
    PlanState.PROPOSED,
    PlanState.CHANGES_REQUESTED,
    PlanState.REJECTED,
    PlanState.WITHDRAWN,
    PlanState.EXPIRED,
    PlanState.STOPPED,
)

SQL = read_statements(Path(__file__).parent / "sql" / "plans.sql")


class NotYours(Refused):
    """The plan's author does not answer for this token."""


@transaction.atomic
def open_plan(
    workspace: Workspace,
    *,
    token: Token,
    run_id: str,
    title: str,
    tool: str,
    channel: Channel,
    event_id: str,
    scope: str = "",
    rationale: str = "",
    currency: str = "",
    replaces: Plan | None = None,
) -> Plan:
    """A new draft. With `replaces` it is the next version of that plan, which must not be approved or replaced already.

    Raises Refused, naming the field, where a value cannot stand in a plan or in the keys of its rows.
    """
    if not workspace.pk == token.workspace_id == channel.workspace_id:
        raise Refused("The token and the channel must be of the same workspace as the plan.")
    title, currency = title.strip(), currency.strip().upper()
    if not title or len(title) > 200 or re.search(r"[\r\n\0]", title):
        raise Refused("title must be one line of 1 to 200 characters.")
    if currency and not re.fullmatch(r"[A-Z]{3}", currency):
        raise Refused("currency must be a code of three letters, such as EUR.")
    if len(tool) > 80:
        raise Refused("tool is longer than 80 characters.")
    if "\0" in rationale:
        raise Refused("rationale holds a NUL character.")
    try:
        effect_key(event_id, tool, "a target", None, scope_of(workspace.slug, currency, scope))
    except UnusableKey as error:
        raise Refused(f"{error}.") from None
    if replaces is not None:
        _may_replace(replaces, token)
    try:
        with transaction.atomic():
            plan = Plan.objects.create(
                workspace=workspace,
                token=token,
                author_id=token.owner_id,
                run_id=run_id,
                title=title,
                tool=tool.strip(),
                channel=channel,
                event_id=event_id.strip(),
                scope=scope.strip(),
                rationale=rationale,
                currency=currency,
                replaces=replaces,
                version=replaces.version + 1 if replaces else 1,
            )
    except IntegrityError:
        raise LostRace("Another version replaces that plan already.", replaces) from None
    _record("plan opened", plan, token, after={"version": plan.version, "replaces": replaces.pk if replaces else None})
    return plan


@transaction.atomic
def load(plan: Plan, rows: Iterable[NewRow | RowError], *, token: Token) -> int:
    """Append rows to a draft, all of them or none. Returns how many were added.

    Raises RowsRefused with line and field of each error, in the rows as read or in their targets and amounts; LostRace when
    the plan is no draft any more. Rows stream from the iterator into the database.
    """
    current = _own(plan, token)
    if current.state != PlanState.DRAFT:
        raise LostRace(f"Rows can be added to a draft only, and this plan is {_in_words(current)}.", current)
    errors = Errors()
    lines = array("L")  # the line of each new row, for what only the whole load shows
    with connection.cursor() as cursor:
        with cursor.copy(SQL["copy"]) as copy:
            for values in finished(current, rows, errors=errors, lines=lines):
                copy.write_row(values)
        if lines and not errors.count:
            cursor.execute(SQL["twice_in_load"], {"plan_id": current.pk, "after": current.row_count})
            tell_duplicates(cursor.fetchall(), current, errors=errors, lines=lines)
    errors.refuse_if_any()
    Plan.objects.filter(pk=current.pk, state=PlanState.DRAFT).update(row_count=F("row_count") + len(lines))
    _record("rows loaded", current, token, after={"added": len(lines), "rows": current.row_count + len(lines)})
    return len(lines)


@transaction.atomic
def submit(plan: Plan, *, token: Token) -> Plan:
    """Propose a draft: from here on its text stays as it is. Runs the checks and takes the digest.

    Raises Refused for a plan without rows, LostRace when the plan is no draft any more or when the version it replaces
    was approved meanwhile. A version that still waited for a decision is withdrawn.
    """
    current = _own(plan, token)
    if current.state != PlanState.DRAFT:
        raise LostRace(f"Only a draft can be submitted, and this plan is {_in_words(current)}.", current)
    if not current.row_count:
        raise Refused("This plan has no rows yet; load some before you submit it.")
    if current.replaces_id:
        _retire(Plan.objects.select_for_update().get(pk=current.replaces_id), current, token)
    with connection.cursor() as cursor:
        cursor.execute(SQL["take_epochs"], {"plan_id": current.pk})
        cursor.execute(SQL["show_opt_outs"], {"workspace_id": current.workspace_id})
    found, digest = checks.run(current), digest_now(current)
    moved = Plan.objects.filter(pk=current.pk, state=PlanState.DRAFT).update(
        state=PlanState.PROPOSED,
        checks=found,
        digest=digest,
        proposed_at=Now(),
        expires_at=Now() + ANSWER_WITHIN,
    )
    if moved != 1:
        raise LostRace("This plan is no draft any more.", current)
    current.refresh_from_db()
    _record(
        "plan proposed", current, token,
        before={"state": PlanState.DRAFT}, after={"state": PlanState.PROPOSED, "rows": current.row_count},
    )  # fmt: skip
    return current


@transaction.atomic
def withdraw(plan: Plan, *, reason: str, token: Token) -> Plan:
    """Take a draft or a proposed plan back, for a reason that the reviewers see.

    Raises LostRace when it was decided on, Refused without a reason.
    """
    if not reason.strip():
        raise Refused("reason is empty: say why the plan is withdrawn.")
    current = _own(plan, token)
    if current.state not in (PlanState.DRAFT, PlanState.PROPOSED):
        raise LostRace(f"This plan is {_in_words(current)} and can no longer be withdrawn.", current)
    _withdraw(current, token, reason)
    return current


def _own(plan: Plan, token: Token) -> Plan:
    """The plan, locked, if the author of it answers for this token."""
    current = Plan.objects.select_for_update(of=("self",)).select_related("channel", "workspace").get(pk=plan.pk)
    if current.workspace_id != token.workspace_id or current.author_id != token.owner_id:
        raise NotYours("This plan was opened by a token of somebody else, so this token may only read it.")
    return current


def _may_replace(replaces: Plan, token: Token) -> None:
    old = _own(replaces, token)
    if old.state not in REPLACEABLE:
        raise LostRace(f"A plan that is {_in_words(old)} cannot be replaced by another version.", old)


def _retire(old: Plan, new: Plan, token: Token) -> None:
    """The version before makes room: whoever looks at it must not approve it beside the new one."""
    if old.state == PlanState.PROPOSED:
        _withdraw(old, token, f"Replaced by version {new.version}.")
    elif old.state not in REPLACEABLE:
        raise LostRace(f"The version that this one replaces is {_in_words(old)} meanwhile.", old)


def _withdraw(current: Plan, token: Token, reason: str) -> None:
    before = current.state
    moved = Plan.objects.filter(pk=current.pk, state=before).update(state=PlanState.WITHDRAWN, decided_at=Now())
    if moved != 1:
        raise LostRace("This plan was decided on meanwhile.", current)
    current.refresh_from_db()
    _record(
        "plan withdrawn", current, token, reason,
        before={"state": before}, after={"state": PlanState.WITHDRAWN},
    )  # fmt: skip


def _in_words(plan: Plan) -> str:
    return plan.state.replace("_", " ")


def _record(
    act: str,
    plan: Plan,
    token: Token,
    reason: str = "",
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any],
) -> None:
    chain.append(
        act,
        workspace_id=plan.workspace_id,
        by=Actor("token", token.pk, token.name),
        on=("plan", plan.pk, plan.title),
        reason=reason,
        before=before,
        after=after,
        digest=plan.digest,
    )
