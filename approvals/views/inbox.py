"""The inbox: all that waits for a person in one workspace."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.roles import Act
from approvals import queries
from effects import queries as ledger
from effects.states import State


@require_safe
@door(Act.READ)
def inbox(request: Visit) -> HttpResponse:
    """Plans to decide on, effects that nobody can settle but a person, late news, and whatever is paused."""
    workspace_id = request.membership.workspace_id
    paused = ledger.pauses(workspace_id)
    plans, channels = queries.plans_by_id(workspace_id, paused), ledger.channels_held(workspace_id, paused)
    context = {
        "inbox": queries.inbox(workspace_id, request.user.pk),
        "counts": ledger.open_counts(workspace_id),
        "since": ledger.waiting_since(workspace_id),
        "news": list(ledger.news(workspace_id)[:20]),
        "news_count": ledger.news_count(workspace_id),
        "unknown": ledger.cases(workspace_id, State.UNKNOWN).rows[:5],
        "pauses": [(pause, plans.get(pause.subject), channels.get(pause.subject)) for pause in paused],
    }
    return render(request, "inbox.html", context)


@require_safe
@door(Act.READ)
def inbox_count(request: Visit) -> HttpResponse:
    """The figures beside the menu, drawn again from time to time."""
    return render(request, "frame.html#badges")
