"""Acts on one plan: approve, reject, request changes, leave rows out, pause, go on, stop. Each is a noun that is POSTed to."""

from collections.abc import Callable

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from accounts.answers import answer_to
from accounts.doors import Visit, door, see_other
from accounts.roles import Act
from approvals import halting, voting
from approvals.forms import ApprovalForm, ChangesForm, ExclusionForm, HoldForm, RejectionForm, ResumptionForm
from approvals.models import Plan
from approvals.views.plan import page, plan_of
from effects.doors import human_of


@require_POST
@door(Act.DECIDE)
def approval(request: Visit, pk: int) -> HttpResponse:
    """Approve exactly what was on screen."""
    plan = plan_of(request, pk)
    codes = [check["code"] for check in plan.checks]
    form = ApprovalForm(request.POST, codes=codes, auto_id="approval-%s")

    def act() -> str:
        typed = form.cleaned_data
        voting.approve(
            plan, by=human_of(request), digest=typed["digest"], reason=typed["reason"], ticked=frozenset(typed["ticked"])
        )
        return "Approved. What you saw is frozen and goes out now; nothing else does."

    return _answer(request, plan, "approval", form, act)


@require_POST
@door(Act.DECIDE)
def rejection(request: Visit, pk: int) -> HttpResponse:
    """Say no."""
    plan, form = plan_of(request, pk), RejectionForm(request.POST, auto_id="rejection-%s")

    def act() -> str:
        voting.reject(plan, by=human_of(request), digest=form.cleaned_data["digest"], reason=form.cleaned_data["reason"])
        return "Rejected. Nothing of this plan will be sent."

    return _answer(request, plan, "rejection", form, act)


@require_POST
@door(Act.DECIDE)
def changes(request: Visit, pk: int) -> HttpResponse:
    """Ask for another version."""
    plan, form = plan_of(request, pk), ChangesForm(request.POST, auto_id="changes-%s")

    def act() -> str:
        typed = form.cleaned_data
        voting.request_changes(plan, by=human_of(request), digest=typed["digest"], reason=typed["reason"])
        return "The agent is asked for another version. Nothing of this one will be sent."

    return _answer(request, plan, "changes_form", form, act)


@require_POST
@door(Act.DECIDE)
def exclusion(request: Visit, pk: int) -> HttpResponse:
    """Leave the ticked rows out."""
    plan, form = plan_of(request, pk), ExclusionForm(request.POST, auto_id="exclusion-%s")

    def act() -> str:
        typed = form.cleaned_data
        voting.exclude(plan, by=human_of(request), positions=typed["positions"], reason=typed["reason"])
        return f"{len(typed['positions']):,} rows are left out. They stay in the list and are never sent."

    return _answer(request, plan, "exclusion", form, act)


@require_POST
@door(Act.HALT)
def pause(request: Visit, pk: int) -> HttpResponse:
    """Start nothing more for now."""
    plan, form = plan_of(request, pk), HoldForm(request.POST, auto_id="pause-%s")

    def act() -> str:
        halting.pause(plan, by=human_of(request), reason=form.cleaned_data["reason"])
        return "Paused. Calls that are under way end as they end; nothing new starts."

    return _answer(request, plan, "pausing", form, act)


@require_POST
@door(Act.HALT)
def resumption(request: Visit, pk: int) -> HttpResponse:
    """Go on."""
    plan, form = plan_of(request, pk), ResumptionForm(request.POST, auto_id="resumption-%s")

    def act() -> str:
        halting.resume(plan, by=human_of(request), reason=form.cleaned_data["reason"])
        return "It goes on."

    return _answer(request, plan, "resumption", form, act)


@require_POST
@door(Act.HALT)
def stop(request: Visit, pk: int) -> HttpResponse:
    """Start nothing more, ever."""
    plan, form = plan_of(request, pk), HoldForm(request.POST, auto_id="stop-%s")

    def act() -> str:
        halting.stop(plan, by=human_of(request), reason=form.cleaned_data["reason"])
        return "Stopped. Calls that are under way end as they end; what waits is never sent."

    return _answer(request, plan, "stopping", form, act)


def _answer(request: Visit, plan: Plan, name: str, form: Form, act: Callable[[], str]) -> HttpResponse:
    """The plan once more, with `form` where it is called `name`; or, when the act is done, the way back to it."""

    def again(*, status: int, said: str = "", form: Form | None = None) -> HttpResponse:
        return page(request, plan_of(request, plan.pk), said=said, status=status, typed={name: form} if form else None)

    def back(done: str) -> HttpResponse:
        messages.success(request, done)
        url = reverse("plan", args=[request.membership.workspace.slug, plan.pk])
        return HttpResponseClientRedirect(url) if request.htmx else see_other(url)

    return answer_to(form, act, again=again, back=back)
