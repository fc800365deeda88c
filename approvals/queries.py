"""What pages ask of plans. A row's outcome is read from the ledger each time; every list takes a constant number of queries."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import FETCH_RAISE, QuerySet

from accounts.paging import Page, page_of
from approvals.models import Decision, Outcome, Plan, PlanState, Recipient, Row
from effects.models import Pause
from effects.statements import read_statements

SQL = read_statements(Path(__file__).parent / "sql" / "rows.sql")
CHANGES = (Path(__file__).parent / "sql" / "changes.sql").read_text()
STALLS = (Path(__file__).parent / "sql" / "stalls.sql").read_text()
PATIENCE = 15.0  # seconds in which what is due is taken up when all is well; a plan may wait for turns of another first
MANY = 1_000  # counts on pages stop here


def plans(workspace_id: int, *, state: str = "") -> QuerySet[Plan]:
    """Plans of a workspace; `state` narrows."""
    rows = Plan.objects.filter(workspace_id=workspace_id).select_related("channel", "author", "token")
    rows = rows.defer("checks", "rationale")
    return (rows.filter(state=state) if state else rows).fetch_mode(FETCH_RAISE)


def plan_of(workspace_id: int, pk: int) -> Plan | None:
    """One plan with all that its page names, or none in this workspace."""
    rows = Plan.objects.filter(workspace_id=workspace_id)
    return rows.select_related("channel", "author", "token", "replaces", "replaced_by").filter(pk=pk).first()


def rows(plan: Plan, *, text: str = "", figure: str = "", after: int | None = None, size: int = 50) -> Page[Outcome]:
    """A page of a plan's rows in their order, without their content, each with what became of it."""
    found = Outcome.objects.filter(plan=plan).defer("text", "html", "payload", "record", "content_digest")
    if text or figure:
        found = found.filter(position__in=_positions(plan, figure, text, after or 0, size + 1))
    return page_of(found.fetch_mode(FETCH_RAISE), after=after, by="position", size=size)


def _positions(plan: Plan, figure: str, text: str, after: int, most: int) -> list[int]:
    values: dict[str, Any] = {"plan_id": plan.pk, "figure": figure, "text": text, "after": after, "most": most}
    with connection.cursor() as cursor:
        if not figure:
            cursor.execute(SQL["by_text"], values)
        else:
            candidates = figure if figure in SQL else "few" if _is_few(cursor, values) else "many"
            cursor.execute(SQL["under"].replace("{candidates}", SQL[candidates]), values)
        return [position for (position,) in cursor.fetchall()]


def _is_few(cursor: CursorWrapper, values: dict[str, Any]) -> bool:
    """Whether so few effects of the plan are in this state that their rows are looked for one by one."""
    cursor.execute(SQL["of_a_state"], values | {"many": MANY + 1})
    return bool(cursor.fetchone()[0] <= MANY)


def whole_rows(plan: Plan, *, after: int, most: int) -> list[tuple[Any, ...]]:
    """The next rows with all that an export tells of them, beginning with the position; JSON as text."""
    with connection.cursor() as cursor:
        cursor.execute(SQL["whole"], {"plan_id": plan.pk, "after": after, "most": most})
        return cursor.fetchall()


def row_of(plan: Plan, position: int) -> Outcome | None:
    """One row with its whole content and its outcome."""
    return Outcome.objects.filter(plan=plan, position=position).first()


def stalled(plans: list[Plan]) -> dict[int, datetime]:
    """Since when each of these plans has rows to send and nobody who does it: no worker is free, or the broker is away."""
    with connection.cursor() as cursor:
        cursor.execute(STALLS, {"plans": [plan.pk for plan in plans], "patience": PATIENCE})
        return dict(cursor.fetchall())


def row_before(plan: Plan, row: Recipient) -> Row | None:
    """The row for the same effect in the version that this plan replaces, where its content was another."""
    if not plan.replaces_id:
        return None
    return Row.objects.filter(plan_id=plan.replaces_id, key=row.key).exclude(content_digest=row.content_digest).first()


def decisions(plan: Plan) -> list[Decision]:
    """Who decided what on a plan, oldest first."""
    return list(plan.decisions.select_related("by").order_by("id"))


@dataclass(frozen=True)
class Inbox:
    """All that waits in a workspace, for one person."""

    mine: list[Plan]  # plans this person may decide
    others: list[Plan]  # plans of this person's own agents, waiting for somebody else
    more: bool


def inbox(workspace_id: int, user_id: int) -> Inbox:
    """Proposed plans, the longest waiting first."""
    proposed = list(plans(workspace_id, state=PlanState.PROPOSED).order_by("id")[: MANY // 10 + 1])
    shown = proposed[: MANY // 10]
    return Inbox(
        [plan for plan in shown if plan.author_id != user_id],
        [plan for plan in shown if plan.author_id == user_id],
        len(proposed) > len(shown),
    )


def proposed_count(workspace_id: int, *, user_id: int) -> int:
    """How many plans this person may decide (at most MANY)."""
    waiting = Plan.objects.filter(workspace_id=workspace_id, state=PlanState.PROPOSED).exclude(author_id=user_id)
    return waiting.order_by()[:MANY].count()


def plans_by_id(workspace_id: int, pauses: list[Pause]) -> dict[str, Plan]:
    """The plans that pauses hold, by the pause's subject."""
    numbers = [int(pause.subject.partition(":")[2]) for pause in pauses if pause.subject.startswith("plan:")]
    found = Plan.objects.filter(workspace_id=workspace_id, pk__in=numbers).only("title")
    return {f"plan:{plan.pk}": plan for plan in found}


@dataclass(frozen=True)
class Segment:
    """One stretch of the bar, in per cent of its length."""

    name: str
    count: int
    x: float
    width: float


# Done first, so that the bar reads like progress; what waits is the pale remainder.
BAR = ("done", "covered", "failed", "revoked", "stranded", "unknown", "pending", "waiting", "excluded")
THINNEST = 0.6  # per cent: one unknown among a hundred thousand is still to be seen


def bar(figures: dict[str, int]) -> list[Segment]:
    """The closing sum as stretches that fill 100 per cent."""
    shown = {name: figures[name] for name in BAR if figures.get(name)}
    weights = {name: max(THINNEST, 100 * count / max(1, figures["rows"])) for name, count in shown.items()}
    scale = 100 / sum(weights.values()) if weights else 0.0
    found, x = [], 0.0
    for name, weight in weights.items():
        found.append(Segment(name, shown[name], round(x, 3), round(weight * scale, 3)))
        x += weight * scale
    return found


def changes_since(plan: Plan) -> dict[str, int] | None:
    """How a new version differs from the one it replaces: added, left out and changed targets; none for a first version."""
    if not plan.replaces_id:
        return None
    with connection.cursor() as cursor:
        cursor.execute(CHANGES, {"plan_id": plan.pk, "replaces_id": plan.replaces_id})
        added, changed, gone = cursor.fetchone()
    return {"added": added, "changed": changed, "gone": gone}
