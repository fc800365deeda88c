"""The desk: effects that wait for a person, oldest first, with all that is known of each."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.paging import Page, cursor_of
from accounts.roles import Act
from effects import queries
from effects.states import State
from effects.views.effect import askable, card_of


@require_safe
@door(Act.READ)
def unknown(request: Visit) -> HttpResponse:
    """Unknown effects, and below them the stranded ones."""
    workspace_id = request.membership.workspace_id
    found = queries.cases(workspace_id, State.UNKNOWN, after=cursor_of(request.GET.get("after")))
    stuck = queries.cases(workspace_id, State.STRANDED, after=cursor_of(request.GET.get("stranded")))
    asked = {channel.pk: askable(channel) for channel in queries.channels(workspace_id)}

    def cards(page: Page[queries.Case]) -> list[dict[str, Any]]:
        return [card_of(case, can_ask=asked[case.effect.channel_id]) for case in page.rows]

    context = {
        "unknown": found,
        "unknown_cards": cards(found),
        "stranded": stuck,
        "stranded_cards": cards(stuck),
        "counts": queries.open_counts(workspace_id),
        "since": queries.waiting_since(workspace_id),
    }
    return render(request, "effects/desk.html", context)
