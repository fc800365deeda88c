"""The ledger as a list, and the channels its effects go through."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.paging import STRETCH, cursor_of
from accounts.roles import Act
from effects import queries
from effects.forms import SearchForm


@require_safe
@door(Act.READ)
def effects(request: Visit) -> HttpResponse:
    """Every attempt at every effect, newest first; the filter lives in the address."""
    form = SearchForm(request.GET)
    workspace_id = request.membership.workspace_id
    page, stretched = queries.ledger(workspace_id, form.search, after=cursor_of(request.GET.get("after")))
    context = {
        "form": form,
        "search": form.search,
        "page": page,
        "stretched": stretched,
        "stretch": STRETCH,
        "channels": queries.channels(workspace_id),
    }
    return render(request, "effects/list.html#ledger" if request.htmx.target == "ledger" else "effects/list.html", context)
