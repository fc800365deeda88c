"""Who wants nothing more: the list, adding to it, and lifting."""

from collections.abc import Callable

from django.contrib import messages
from django.db.models import Q
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.answers import answer_to
from accounts.doors import Visit, door, see_other
from accounts.paging import STRETCH, cursor_of, page_of, stretch_of
from accounts.roles import Act
from approvals import opting_out
from approvals.forms import LiftForm, OptOutForm
from approvals.models import OptOut
from effects.doors import human_of
from effects.models import Channel


@require_safe
@door(Act.READ)
def opt_outs(request: Visit) -> HttpResponse:
    """Every opt-out of the workspace, newest first; those that were lifted too."""
    return _page(request)


@require_POST
@door(Act.OPT_OUT)
def addition(request: Visit) -> HttpResponse:
    """Send nothing more to these targets."""
    form = _form(request, request.POST)

    def act() -> str:
        typed = form.cleaned_data
        new = opting_out.opt_out(
            request.membership.workspace,
            typed["targets"].splitlines(),
            by=human_of(request),
            reason=typed["reason"],
            channel=typed["channel"],
        )
        if not new:
            return "They had opted out before."
        return f"{new:,} opted out. What was not sent to them yet is withheld, also in plans that are going out."

    return _answer(request, form, act)


@require_POST
@door(Act.OPT_OUT)
def lifting(request: Visit, pk: int) -> HttpResponse:
    """Let plans to come reach this target again."""
    opt_out = get_object_or_404(OptOut, pk=pk, workspace_id=request.membership.workspace_id)
    form = LiftForm(request.POST, auto_id=f"lift-{pk}-%s")

    def act() -> str:
        opting_out.lift(opt_out, by=human_of(request), reason=form.cleaned_data["reason"])
        return f"{opt_out.target} is reached again by plans that are proposed from now on."

    return _answer(request, form, act, lifting=pk)


def _answer(request: Visit, form: Form, act: Callable[[], str], *, lifting: int = 0) -> HttpResponse:
    """The list once more, with `form` above it or at the opt-out that it would have lifted; or, when the act is done, the way back."""

    def again(*, status: int, said: str = "", form: Form | None = None) -> HttpResponse:
        return _page(request, form=form, lifting=lifting, said=said, status=status)

    def back(done: str) -> HttpResponse:
        messages.success(request, done)
        return see_other(reverse("opt-outs", args=[request.membership.workspace.slug]))

    return answer_to(form, act, again=again, back=back)


def _page(request: Visit, *, form: Form | None = None, lifting: int = 0, said: str = "", status: int = 200) -> HttpResponse:
    """The list; `form` is given back as typed, above it or at the opt-out that it would have lifted."""
    text, after = request.GET.get("target", "").strip()[:300], cursor_of(request.GET.get("after"))
    rows = OptOut.objects.filter(workspace_id=request.membership.workspace_id).select_related("channel")
    page, stretched = stretch_of(rows, Q(target__icontains=text), after=after) if text else (page_of(rows, after=after), False)
    if form and lifting and lifting not in [opt_out.pk for opt_out in page.rows]:  # others came before it meanwhile
        said = " ".join(f"{error}" for errors in form.errors.values() for error in errors)
    fresh = {opt_out.pk: LiftForm(auto_id=f"lift-{opt_out.pk}-%s") for opt_out in page.rows if opt_out.lifted_at is None}
    context = {
        "page": page,
        "stretched": stretched,
        "stretch": STRETCH,
        "text": text,
        "said": said,
        "form": form if form and not lifting else _form(request),
        "entries": [(opt_out, form if form and opt_out.pk == lifting else fresh.get(opt_out.pk)) for opt_out in page.rows],
    }
    fragment = "#opt-outs" if request.htmx.target == "opt-outs" else ""
    return render(request, f"plans/opt_outs.html{fragment}", context, status=status)


def _form(request: Visit, *typed: object) -> OptOutForm:
    channels = Channel.objects.filter(workspace_id=request.membership.workspace_id).order_by("slug")
    return OptOutForm(*typed, channels=channels, auto_id="opt-out-%s")
