"""Acts on one effect: resolve, revoke, open an epoch, ask the provider, see late news. Each is a noun that is POSTed to."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.answers import answer_to
from accounts.doors import Visit, door, see_other
from accounts.roles import Act
from effects import queries, rulings, seeing
from effects.asking import ask_now
from effects.doors import human_of
from effects.forms import EpochForm, NewsForm, ResolutionForm, RevocationForm
from effects.models import Effect
from effects.states import State
from effects.story import ANSWERS
from effects.views.effect import askable, card_of, effect_of, page


@require_POST
@door(Act.RESOLVE)
def resolution(request: Visit, pk: int) -> HttpResponse:
    """Say what became of an unknown effect."""
    effect, form = effect_of(request, pk), ResolutionForm(request.POST, auto_id=f"resolution-{pk}-%s")

    def rule() -> str:
        typed = form.cleaned_data
        ruled = rulings.resolve(
            effect, to=typed["to"], by=human_of(request), reason=typed["reason"], evidence=typed["evidence"],
            seen=typed["state"], again=typed["again"],
        )  # fmt: skip
        return f"{ruled.target} is {ruled.state} now, on your word."

    return _answer(request, effect, "resolution", form, rule)


@require_POST
@door(Act.RESOLVE)
def revocation(request: Visit, pk: int) -> HttpResponse:
    """Take an unknown or stranded effect back."""
    effect, form = effect_of(request, pk), RevocationForm(request.POST, auto_id=f"revocation-{pk}-%s")

    def rule() -> str:
        typed = form.cleaned_data
        rulings.revoke(effect, by=human_of(request), reason=typed["reason"], seen=typed["state"])
        return f"{effect.target} is revoked; its key is free."

    return _answer(request, effect, "revocation", form, rule)


@require_POST
@door(Act.BUMP)
def epoch(request: Visit, pk: int) -> HttpResponse:
    """Supersede a done effect, so that its key may have one more."""
    effect, form = effect_of(request, pk), EpochForm(request.POST, auto_id=f"epoch-{pk}-%s")

    def rule() -> str:
        typed = form.cleaned_data
        opened = rulings.open_epoch(effect, by=human_of(request), reason=typed["reason"], seen_epoch=typed["epoch"])
        return f"Epoch {opened.epoch} is open. Nothing is sent by this: the next plan for this key carries it."

    return _answer(request, effect, "epoch", form, rule)


@require_POST
@door(Act.RESOLVE)
def news(request: Visit, pk: int) -> HttpResponse:
    """Say that late news was seen, and what was done about it."""
    effect, form = effect_of(request, pk), NewsForm(request.POST, auto_id="news-typed-%s")

    def see() -> str:
        typed = form.cleaned_data
        seen = seeing.see(effect, typed["callback"], by=human_of(request), reason=typed["reason"])
        return f"Noted: you have seen that {effect.target} was called {seen.kind}. The effect stays {effect.state}."

    return _answer(request, effect, "news", form, see)


@require_POST
@door(Act.RESOLVE)
def look_up(request: Visit, pk: int) -> HttpResponse:
    """Ask the provider now whether the effect exists."""
    effect, form = effect_of(request, pk), forms.Form(request.POST)

    def ask() -> str:
        said = ask_now(effect, by=human_of(request))
        proof = (
            f": {said.receipt}" if said.receipt else ". That is no proof; its log may lag." if said.answer == "absent" else "."
        )
        settles = " The row settles by itself." if said.receipt and effect.state == State.PENDING else ""
        return f"{ANSWERS.get(said.answer, said.answer)}{proof}{settles}"

    return _answer(request, effect, "asked", form, ask)


def _answer(request: Visit, effect: Effect, name: str, form: forms.Form, act: Callable[[], str]) -> HttpResponse:
    """The page or the card once more, with `form` where it is called `name`; or, when the act is done, the way back."""

    def again(*, status: int, said: str = "", form: forms.Form | None = None) -> HttpResponse:
        if form and name == "asked":  # a button without a form of its own: what was refused is said above
            said = " ".join(map(str, form.non_field_errors()))
        return _again(request, effect_of(request, effect.pk), said=said, status=status, typed={name: form} if form else None)

    def back(done: str) -> HttpResponse:
        if _on_the_desk(request, effect):
            return _again(request, effect_of(request, effect.pk), told=done)
        messages.success(request, done)
        if request.POST.get("from") == "desk":
            return see_other(reverse("unknown", args=[request.membership.workspace.slug]))
        return see_other(reverse("effect", args=[request.membership.workspace.slug, effect.pk]))

    return answer_to(form, act, again=again, back=back)


def _again(
    request: Visit,
    effect: Effect,
    *,
    said: str = "",
    told: str = "",
    status: int = 200,
    typed: dict[str, forms.Form] | None = None,
) -> HttpResponse:
    if not _on_the_desk(request, effect):
        return page(request, effect, said=said, status=status, typed=typed)
    case = queries.case(effect.workspace_id, effect.pk) or queries.Case(effect, [])
    card = card_of(case, can_ask=askable(effect.channel), typed=typed)
    return render(request, "effects/desk.html#case", {"card": card, "said": said, "told": told}, status=status)


def _on_the_desk(request: Visit, effect: Effect) -> bool:
    """True when a card on the desk asked, and only that card is to be drawn again."""
    return request.htmx.target == f"case-{effect.pk}"
