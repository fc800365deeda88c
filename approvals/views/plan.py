"""Plans as a list, and one plan with everything a person needs to decide on it and to watch it go out."""

import hashlib
from typing import Any

from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import HTMX_STOP_POLLING

from accounts.doors import Visit, door
from accounts.paging import cursor_of, page_of
from accounts.roles import Act
from approvals import coverage, halting, queries
from approvals.forms import ApprovalForm, ChangesForm, ExclusionForm, HoldForm, PlansForm, RejectionForm, ResumptionForm, RowsForm
from approvals.models import Plan, PlanState
from approvals.money import amount_text
from approvals.views.letter import letter_of
from audit.queries import of_object

type Typed = dict[str, Form] | None

FROZEN = (PlanState.APPROVED, PlanState.STOPPED)


@require_safe
@door(Act.READ)
def plans(request: Visit) -> HttpResponse:
    """Every plan of the workspace, newest first."""
    form = PlansForm(request.GET)
    rows = queries.plans(request.membership.workspace_id, state=form.cleaned_data["state"] if form.is_valid() else "")
    page = page_of(rows, after=cursor_of(request.GET.get("after")))
    return render(
        request, "plans/list.html#plans" if request.htmx.target == "plans" else "plans/list.html", {"form": form, "page": page}
    )


@require_safe
@door(Act.READ)
def plan(request: Visit, pk: int) -> HttpResponse:
    """One plan; the filter of its rows lives in the address."""
    found = plan_of(request, pk)
    if request.htmx.target == "rows":
        return render(request, "plans/plan.html#rows", {"plan": found, **_rows(request, found), **_forms(found)})
    return page(request, found)


@require_safe
@door(Act.READ)
def progress(request: Visit, pk: int) -> HttpResponse:
    """The closing sum again: 204 while nothing has moved since `v`, 286 (stop asking) when nothing will."""
    found = plan_of(request, pk)
    context = _progress(found)
    if request.GET.get("v") == context["version"]:
        return HttpResponse(status=204)
    status = 200 if context["every"] else HTMX_STOP_POLLING
    answer = render(request, "plans/plan.html#progress", {"plan": found, **context}, status=status)
    answer["HX-Trigger"] = "coverage"
    return answer


def plan_of(request: Visit, pk: int) -> Plan:
    """The plan, if it is in this workspace."""
    found = queries.plan_of(request.membership.workspace_id, pk)
    if found is None:
        raise Http404("no such plan in this workspace")
    return found


def page(request: Visit, plan: Plan, *, said: str = "", status: int = 200, typed: Typed = None) -> HttpResponse:
    """The whole page, or the panel of acts alone where only that was asked for; `typed` are forms to give back as sent."""
    first = queries.rows(plan, size=1).rows
    sample = queries.row_of(plan, first[0].position) if first else None
    decided, progress_of = queries.decisions(plan), _progress(plan)
    figures = progress_of["figures"]
    context = {
        "plan": plan,
        "said": said,
        "why_not": why_not(request, plan),
        "expired": _expired(plan),
        "blocking": [check for check in plan.checks if check["blocking"]],
        "warnings": [check for check in plan.checks if not check["blocking"]],
        "decisions": decided,
        "entries": of_object(plan.workspace_id, "plan", plan.pk),
        "changes": queries.changes_since(plan) if plan.state == PlanState.PROPOSED else None,
        **(letter_of(plan, sample, "") if sample else {}),
        **progress_of,
        "sending": figures["rows"] - figures["excluded"] - figures["covered"],
        "own_pause": any(pause.subject == halting.subject_of(plan) for pause in progress_of["pauses"]),
        "open_end": plan.state == PlanState.APPROVED and bool(progress_of["moving"] or progress_of["stuck"]),
        "mine": any(decision.by_id == request.user.pk for decision in decided),
        **_rows(request, plan),
        **_forms(plan, typed),
    }
    fragment = "#decision" if request.htmx.target == "decision" else ""
    return render(request, f"plans/plan.html{fragment}", context, status=status)


def why_not(request: Visit, plan: Plan) -> str:
    """Why this person cannot approve this plan; an empty text when they can."""
    if not request.may["decide"]:
        return f"Your role here is {request.membership.role}: it reads plans and does not decide on them."
    if plan.author_id == request.user.pk:
        return "You answer for the agent that proposed this plan, so somebody else has to approve it."
    return ""


def _expired(plan: Plan) -> bool:
    return bool(plan.state == PlanState.PROPOSED and plan.expires_at and plan.expires_at <= timezone.now())


def _rows(request: Visit, plan: Plan) -> dict[str, Any]:
    form = RowsForm(request.GET)
    form.is_valid()
    text, figure = form.cleaned_data.get("text", ""), form.cleaned_data.get("state", "")
    after = cursor_of(request.GET.get("after"))
    rows = queries.rows(plan, text=text, figure=figure, after=after)
    for one in rows.rows:
        one.amount = amount_text(one.amount_minor, plan.currency)  # type: ignore[attr-defined]
    return {
        "filter": form,
        "rows": rows,
        "filtered": bool(text or figure),
        "frozen": plan.state in FROZEN,
        "may_exclude": request.may["decide"] and plan.state == PlanState.PROPOSED and not _expired(plan),
        "ticked": {number for number in request.POST.getlist("positions") if number.isdigit()},
    }


def _forms(plan: Plan, typed: Typed = None) -> dict[str, Form]:
    shown = {"digest": plan.digest}
    codes = [check["code"] for check in plan.checks]
    fresh = {
        "approval": ApprovalForm(initial=shown, codes=codes, auto_id="approval-%s"),
        "rejection": RejectionForm(initial=shown, auto_id="rejection-%s"),
        "changes_form": ChangesForm(initial=shown, auto_id="changes-%s"),
        "exclusion": ExclusionForm(auto_id="exclusion-%s"),
        "pausing": HoldForm(auto_id="pause-%s"),
        "stopping": HoldForm(auto_id="stop-%s"),
        "resumption": ResumptionForm(auto_id="resumption-%s"),
    }
    return {**fresh, **(typed or {})}


def _progress(plan: Plan) -> dict[str, Any]:
    """The closing sum, its bar, the pauses in force, a word for this very picture, and how often to look again."""
    figures = coverage.counts(plan)
    pauses = halting.pauses(plan) if plan.state == PlanState.APPROVED else []
    waiting = figures["waiting"] if plan.state == PlanState.APPROVED else 0
    moving, stuck = waiting + figures["pending"], figures["unknown"] + figures["stranded"]
    stalled = queries.stalled([plan]).get(plan.pk) if moving else None
    picture = f"{plan.state} {sorted(figures.items())} {[pause.pk for pause in pauses]} {stalled is None}"
    return {
        "figures": figures,
        "bar": queries.bar(figures),
        "pauses": pauses,
        "frozen": plan.state in FROZEN,
        "moving": moving,
        "stuck": stuck,
        "stalled": stalled,
        "version": hashlib.sha256(picture.encode()).hexdigest()[:12],
        "every": 0 if plan.state not in FROZEN else 2 if moving else 10 if stuck else 0,
    }
