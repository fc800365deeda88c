"""Runs of agents: what each did, what it proposed, and whether it may be replayed."""

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.paging import cursor_of, page_of
from accounts.roles import Act
from approvals import queries as approvals
from runs import queries
from runs.models import RunState


@require_safe
@door(Act.READ)
def runs(request: Visit) -> HttpResponse:
    """Every run of the workspace, newest first."""
    agent, state = request.GET.get("agent", "").strip()[:120], request.GET.get("state", "")
    states = [one.value for one in RunState]
    rows = queries.runs(request.membership.workspace_id, agent=agent, state=state if state in states else "")
    page = page_of(rows, after=cursor_of(request.GET.get("after")))
    context = {"page": page, "agent": agent, "state": state, "states": states}
    return render(request, "runs/list.html#runs" if request.htmx.target == "runs" else "runs/list.html", context)


@require_safe
@door(Act.READ)
def run(request: Visit, pk: int) -> HttpResponse:
    """One run."""
    found = queries.run_of(request.membership.workspace_id, pk)
    if found is None:
        raise Http404("no such run in this workspace")
    effects, plans = queries.effects_of(found), queries.plans_of(found)
    stalled = approvals.stalled(plans)
    context = {
        "run": found,
        "plans": plans,
        "stalled": [(plan, stalled[plan.pk]) for plan in plans if plan.pk in stalled],
        "effects": effects[:25],
        "more_effects": len(effects) > 25,
        "replay": queries.replay(found),
    }
    return render(request, "runs/run.html", context)
