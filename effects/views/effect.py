"""One effect: its identity, its story, the raw reply, and what a person may do from the state it is in."""

from typing import Any

from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.roles import Act
from effects import queries
from effects.asking import can_ask
from effects.forms import EpochForm, ResolutionForm, RevocationForm
from effects.models import Channel, Effect
from effects.story import story
from effects.transcripts import as_hex, as_json, as_text, is_cut
from effects.views.late import late

type Typed = dict[str, Form] | None

TABS = {"text": as_text, "json": as_json, "hex": as_hex}


@require_safe
@door(Act.READ)
def effect(request: Visit, pk: int) -> HttpResponse:
    """The page of one effect."""
    return page(request, effect_of(request, pk))


def effect_of(request: Visit, pk: int) -> Effect:
    """The effect, if it is in this workspace."""
    rows = Effect.objects.filter(workspace_id=request.membership.workspace_id)
    found = rows.select_related("channel", "kept_reply", "challenge", "superseded_by__opened_by").filter(pk=pk).first()
    if found is None:
        raise Http404("no such effect in this workspace")
    return found


def page(request: Visit, effect: Effect, *, said: str = "", status: int = 200, typed: Typed = None) -> HttpResponse:
    """The whole page; `said` is one sentence above the acts, `typed` the forms to give back as they were sent."""
    epochs = queries.epochs_of(effect)
    told = late(effect, may_read_raw=request.may["read_raw"], typed=(typed or {}).get("news"))
    context = {
        "effect": effect,
        "moments": story(effect, epochs),
        "attempts": queries.attempts(effect),
        "epochs": epochs,
        "late": told,
        "news": [one for one in told if one.form],
        "said": said,
        "reply": _reply(effect, request.GET.get("raw", "text")) if request.may["read_raw"] else None,
        "card": card_of(queries.Case(effect, []), can_ask=askable(effect.channel), typed=typed),
    }
    fragment = "#reply" if request.htmx.target == "reply" else ""
    return render(request, f"effects/effect.html{fragment}", context, status=status)


def card_of(case: queries.Case, *, can_ask: bool, typed: Typed = None) -> dict[str, Any]:
    """An effect, what is known of it, and the forms for what a person may do; ids are kept apart by its number."""
    effect = case.effect
    fresh = {
        "resolution": ResolutionForm(initial={"state": effect.state}, auto_id=f"resolution-{effect.pk}-%s"),
        "revocation": RevocationForm(initial={"state": effect.state}, auto_id=f"revocation-{effect.pk}-%s"),
        "epoch": EpochForm(initial={"epoch": effect.epoch}, auto_id=f"epoch-{effect.pk}-%s"),
    }
    return {"case": case, "effect": effect, "can_ask": can_ask, **fresh, **(typed or {})}


def askable(channel: Channel) -> bool:
    """True when the channel's provider can be asked; a channel that cannot be opened cannot."""
    try:
        return can_ask(channel)
    except ValueError:
        return False


def _reply(effect: Effect, tab: str) -> dict[str, Any]:
    raw = bytes(effect.reply.raw if effect.reply else b"")
    tab = tab if tab in TABS else "text"
    return {
        "tab": tab,
        "tabs": list(TABS),
        "size": len(raw),
        "shown": TABS[tab](raw),
        "cut": is_cut(raw, tab),
        "kind": effect.reply and effect.reply.kind,
        "answer": as_text(bytes(effect.answer.raw)) if effect.answer else "",
    }
