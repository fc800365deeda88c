"""Plans over the API: open, load, submit, withdraw, look. Nothing here decides anything."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

from ninja import Query, Router
from ninja.responses import Status

from approvals import coverage, intake, plans, queries
from approvals.models import Outcome, Plan
from effects.models import Channel
from runs.api.auth import AgentRequest
from runs.api.bodies import body_of
from runs.api.idempotency import once
from runs.api.problems import Problem, not_found
from runs.api.shapes import (
    Loaded,
    NewPlan,
    PlanOpened,
    PlanShown,
    PlanSubmitted,
    RowsShown,
    Withdrawal,
)
from runs.api.waiting import LONGEST_WAIT, mark_of, wait_for_change
from runs.models import Run

router = Router(tags=["plans"])

type Reader = Callable[[Iterable[bytes]], Iterator[intake.Item]]

READERS: dict[str, Reader] = {
    "application/x-ndjson": intake.read_ndjson,
    "application/ndjson": intake.read_ndjson,
    "application/jsonl": intake.read_ndjson,
    "application/x-jsonlines": intake.read_ndjson,
    "text/csv": intake.read_csv,
}
ROWS = {
    "requestBody": {
        "required": True,
        "content": {name: {"schema": {"type": "string"}} for name in ("application/x-ndjson", "text/csv")},
    }
}


@router.post("", response={201: PlanOpened}, summary="Open a plan")
@once
def open_plan(request: AgentRequest, body: NewPlan) -> Status[dict[str, object]]:
    """A draft, to be filled with rows and submitted."""
    workspace = request.auth.workspace
    channel = Channel.objects.filter(workspace=workspace, slug=body.channel).first()
    if channel is None:
        raise Problem(422, "invalid", "See errors.", [{"field": "channel", "error": "is no channel of your workspace"}])
    if not Run.objects.filter(workspace=workspace, pk=body.run_id).exists():
        raise not_found("run")
    plan = plans.open_plan(
        workspace,
        token=request.auth,
        channel=channel,
        run_id=str(body.run_id),
        replaces=_plan(request, body.replaces) if body.replaces else None,
        **body.model_dump(include={"title", "tool", "event_id", "scope", "rationale", "currency"}),
    )
    return Status(201, {"id": plan.pk, "state": plan.state, "version": plan.version})


@router.post("/{id}/rows", response=Loaded, summary="Load rows", openapi_extra=ROWS)
@once
def load_rows(request: AgentRequest, id: int) -> dict[str, int]:
    """NDJSON or CSV with the fields target, subject, text, html, payload, amount_minor, record. All rows are kept, or none;
    what is wrong is told by line and field. Loads append.
    """
    body = body_of(request)
    try:
        plan, read = _plan(request, id), _reader_of(request)
        added = plans.load(plan, read(body), token=request.auth)
    finally:
        body.digest()  # read to its end: whoever still sends does not hear our answer
    plan.refresh_from_db(fields=["row_count"])
    return {"rows": added, "total": plan.row_count}


def _reader_of(request: AgentRequest) -> Reader:
    read = READERS.get(request.content_type or "")
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    if read is None or charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem(415, "unsupported_media_type", "Send application/x-ndjson or text/csv, in UTF-8.")
    return read


@router.post("/{id}/submit", response=PlanSubmitted, summary="Submit a plan")
@once
def submit(request: AgentRequest, id: int) -> dict[str, Any]:
    """From here on the text stays as it is, and people decide. The checks are what they see first."""
    plan = plans.submit(_plan(request, id), token=request.auth)
    return {"id": plan.pk, "state": plan.state, "digest": plan.digest, "checks": plan.checks}


@router.post("/{id}/withdraw", response=PlanOpened, summary="Withdraw a plan")
@once
def withdraw(request: AgentRequest, id: int, body: Withdrawal) -> dict[str, object]:
    """A draft, or a plan that nobody has decided on."""
    plan = plans.withdraw(_plan(request, id), reason=body.reason, token=request.auth)
    return {"id": plan.pk, "state": plan.state, "version": plan.version}


@router.get("/{id}", response=PlanShown, summary="Look at a plan, or wait for a change")
def show(
    request: AgentRequest,
    id: int,
    wait: Annotated[float, Query(ge=0, description=f"seconds to wait for a change, at most {LONGEST_WAIT:.0f}")] = 0,
    seen: Annotated[str, Query(max_length=80, description="`seen` of an earlier answer, or a state")] = "",
) -> dict[str, Any]:
    """With `wait`, the answer comes when state or counts change, or when the time is over, or sooner when many wait."""
    plan = _plan(request, id)
    counts = coverage.counts(plan)
    if wait:
        plan, counts = wait_for_change(plan, counts, seen=seen, seconds=wait)
    return {
        "id": plan.pk,
        "state": plan.state,
        "digest": plan.digest,
        "version": plan.version,
        "counts": counts,
        "decision": _decision(plan),
        "seen": mark_of(plan, counts),
    }


@router.get("/{id}/rows", response=RowsShown, summary="A plan's rows and what became of each")
def rows(
    request: AgentRequest,
    id: int,
    cursor: Annotated[int | None, Query(ge=0, lt=2**63, description="`next` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> dict[str, Any]:
    """In the order of their positions."""
    page = queries.rows(_plan(request, id), after=cursor, size=limit)
    return {"rows": [_row(row) for row in page.rows], "next": page.more}


def _row(row: Outcome) -> dict[str, Any]:
    return {
        "position": row.position,
        "target": row.target,
        "key": row.key,
        "epoch": row.epoch,
        "attempt": row.attempt,
        "state": row.figure,
        "receipt": row.receipt or "",
        "reason": row.excluded_reason or row.reason or "",
        "effect_id": row.effect_id,
    }


def _decision(plan: Plan) -> dict[str, Any] | None:
    last = plan.decisions.order_by("-id").first()
    return {"kind": last.kind, "reason": last.reason, "at": last.at} if last else None


def _plan(request: AgentRequest, id: int) -> Plan:
    found = Plan.objects.filter(workspace=request.auth.workspace_id, pk=id) if 0 < id < 2**63 else Plan.objects.none()
    plan = found.select_related("channel").first()
    if plan is None:
        raise not_found("plan")
    return plan
