"""Channels: their settings as words, and the pauses that hold them."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from accounts.doors import Visit, door, see_other
from accounts.roles import Act
from effects import queries, rulings
from effects.channels import describe
from effects.doors import human_of
from effects.errors import LostRace, Refused
from effects.forms import LiftForm
from effects.models import Channel, Pause


@dataclass(frozen=True)
class Entry:
    """One channel as the page shows it."""

    channel: Channel
    settings: list[tuple[str, str, str]]
    pauses: list[Pause]
    form: LiftForm | None


@require_safe
@door(Act.READ)
def channels(request: Visit) -> HttpResponse:
    """Every channel of the workspace."""
    return _page(request)


@require_POST
@door(Act.HALT)
def channel_resumption(request: Visit, slug: str) -> HttpResponse:
    """Lift the pauses that hold one channel."""
    channel = get_object_or_404(Channel, workspace_id=request.membership.workspace_id, slug=slug)
    form = LiftForm(request.POST, auto_id=f"lift-{channel.pk}-%s")
    held = queries.paused_channels(queries.pauses(channel.workspace_id)).get(channel.pk, [])
    if not form.is_valid():
        return _page(request, typed={channel.pk: form}, status=422)
    try:
        if not held:
            raise LostRace("This channel is not paused.")
        for pause in held:
            rulings.lift(pause, by=human_of(request), reason=form.cleaned_data["reason"])
    except Refused as refused:
        return _page(request, said=str(refused), status=409 if isinstance(refused, LostRace) else 422)
    messages.success(request, f"{channel.slug} goes on.")
    return see_other(request.path.removesuffix(f"{slug}/resumption/"))


def _page(request: Visit, *, typed: dict[int, LiftForm] | None = None, said: str = "", status: int = 200) -> HttpResponse:
    held = queries.paused_channels(queries.pauses(request.membership.workspace_id))
    entries = [
        Entry(
            channel,
            _words(channel),
            held.get(channel.pk, []),
            (typed or {}).get(channel.pk) or LiftForm(auto_id=f"lift-{channel.pk}-%s"),
        )
        for channel in queries.channels(request.membership.workspace_id)
    ]
    return render(request, "channels.html", {"entries": entries, "said": said}, status=status)


def _words(channel: Channel) -> list[tuple[str, str, str]]:
    try:
        return describe(channel)
    except ValueError as error:  # its secrets were sealed with a key that is gone: say so, and show the other channels
        return [("secrets", "cannot be opened", str(error))]
