"""The way in: the person's workspace, the colours of their screen, and who else is here."""

from typing import cast

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from accounts.doors import Visit, door, see_other
from accounts.models import Membership, Token, User
from accounts.roles import MAY, Act, Role

THEMES = {"light", "dark", "auto"}
YEAR = 365 * 24 * 3600


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The only workspace of a person, or a choice."""
    memberships = list(
        Membership.objects.filter(user=cast(User, request.user)).select_related("workspace").order_by("workspace__name")
    )
    if len(memberships) == 1 and "choose" not in request.GET:
        return redirect("inbox", memberships[0].workspace.slug)
    return render(request, "workspaces.html", {"memberships": memberships})


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Light, dark, or as the system says; kept in a cookie, so that the server draws the page right at once."""
    chosen = request.POST.get("theme", "")
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = "/"
    answer = see_other(back)
    if chosen in THEMES:
        answer.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax", httponly=True, secure=not settings.DEBUG)
    return answer


@require_safe
@door(Act.READ)
def people(request: Visit) -> HttpResponse:
    """Members with their roles, agents' tokens with who answers for them, and what each role may do."""
    workspace = request.membership.workspace
    return render(
        request,
        "people.html",
        {
            "members": Membership.objects.filter(workspace=workspace).select_related("user").order_by("user__email"),
            "tokens": Token.objects.filter(workspace=workspace).select_related("owner").order_by("name"),
            "roles": [(role.value, [act.value for act in Act if act in MAY[role]]) for role in Role],
        },
    )
