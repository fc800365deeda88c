"""Channels: their settings as words, and the pauses that hold them, one by one or all of the workspace."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.answers import answer_to
from accounts.doors import Visit, door, see_other
from accounts.roles import Act
from effects import holding, queries
from effects.channels import callback_keys, describe
from effects.doors import human_of
from effects.forms import PauseForm, ResumeForm
from effects.models import Channel, Pause


@dataclass(frozen=True)
class Entry:
    """One channel as the page shows it."""

    channel: Channel
    settings: list[tuple[str, str, str]]
    pauses: list[Pause]
    form: Form
    callbacks_at: str  # empty: it takes none


@require_safe
@door(Act.READ)
def channels(request: Visit) -> HttpResponse:
    """Every channel of the workspace."""
    return _page(request)


@require_POST
@door(Act.HALT)
def channel_pause(request: Visit, slug: str) -> HttpResponse:
    """Start no call through one channel for now."""
    channel, form = _channel(request, slug), PauseForm(request.POST, auto_id=f"hold-{slug}-%s")

    def act() -> str:
        holding.pause_channel(channel, by=human_of(request), **form.cleaned_data)
        return f"{channel.slug} is paused. Calls that are under way end as they end."

    return _answer(request, slug, form, act)


@require_POST
@door(Act.HALT)
def channel_resumption(request: Visit, slug: str) -> HttpResponse:
    """Lift the pauses that hold one channel."""
    channel, form = _channel(request, slug), ResumeForm(request.POST, auto_id=f"hold-{slug}-%s")

    def act() -> str:
        holding.resume_channel(channel, by=human_of(request), reason=form.cleaned_data["reason"])
        return f"{channel.slug} goes on."

    return _answer(request, slug, form, act)


@require_POST
@door(Act.HALT)
def workspace_pause(request: Visit) -> HttpResponse:
    """Start no call of this workspace for now."""
    form = PauseForm(request.POST, auto_id="all-%s")

    def act() -> str:
        holding.pause_workspace(request.membership.workspace, by=human_of(request), **form.cleaned_data)
        return "Everything in this workspace is paused. Calls that are under way end as they end."

    return _answer(request, "", form, act)


@require_POST
@door(Act.HALT)
def workspace_resumption(request: Visit) -> HttpResponse:
    """Let the workspace go on."""
    form = ResumeForm(request.POST, auto_id="all-%s")

    def act() -> str:
        holding.resume_workspace(request.membership.workspace, by=human_of(request), reason=form.cleaned_data["reason"])
        return "This workspace goes on. Plans and channels that are paused themselves stay paused."

    return _answer(request, "", form, act)


def _answer(request: Visit, slug: str, form: Form, act: Callable[[], str]) -> HttpResponse:
    """The page once more, with `form` at that channel (an empty slug: the workspace); or, when the act is done, the way back to it."""

    def again(*, status: int, said: str = "", form: Form | None = None) -> HttpResponse:
        return _page(request, said=said, status=status, typed={slug: form} if form else None)

    def back(done: str) -> HttpResponse:
        messages.success(request, done)
        return see_other(reverse("channels", args=[request.membership.workspace.slug]))

    return answer_to(form, act, again=again, back=back)


def _page(request: Visit, *, typed: dict[str, Form] | None = None, said: str = "", status: int = 200) -> HttpResponse:
    workspace_id = request.membership.workspace_id
    held = queries.paused_channels(queries.pauses(workspace_id))
    whole = [pause for pause in queries.halts(workspace_id) if pause.workspace_id]

    def form(slug: str, paused: bool, auto_id: str) -> Form:
        return (typed or {}).get(slug) or (ResumeForm if paused else PauseForm)(auto_id=auto_id)

    entries = []
    for channel in queries.channels(workspace_id):
        pauses = held.get(channel.pk, [])
        held_by = form(channel.slug, bool(pauses), f"hold-{channel.slug}-%s")
        entries.append(Entry(channel, _words(channel), pauses, held_by, _callbacks_at(request, channel)))
    context = {"entries": entries, "said": said, "whole": whole, "whole_form": form("", bool(whole), "all-%s")}
    return render(request, "channels.html", context, status=status)


def _channel(request: Visit, slug: str) -> Channel:
    return get_object_or_404(Channel, workspace_id=request.membership.workspace_id, slug=slug)


def _callbacks_at(request: Visit, channel: Channel) -> str:
    try:
        keys = callback_keys(channel)
    except ValueError:
        return ""
    path = reverse("callback", args=[request.membership.workspace.slug, channel.slug])
    return request.build_absolute_uri(path) if keys else ""


def _words(channel: Channel) -> list[tuple[str, str, str]]:
    try:
        return describe(channel)
    except ValueError as error:  # its secrets were sealed with a key that is gone: say so, and show the other channels
        return [("secrets", "cannot be opened", str(error))]
