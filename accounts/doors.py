"""The door in front of every page of a workspace: who are you, are you a member, may your role do this.

A stranger to the workspace is told that the page does not exist; a member without the right is told so.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.cache import add_never_cache_headers
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from accounts.models import Membership, User
from accounts.roles import Act, may


class Visit(HttpRequest):
    """A request that has passed a door. `may` says of every act whether this person may do it, for templates."""

    user: User
    htmx: HtmxDetails
    membership: Membership
    may: dict[str, bool]


type Answer = HttpResponseBase
type View = Callable[..., Answer]


def door(act: Act) -> Callable[[View], View]:
    """Let a view be reached only by members of its workspace whose role may do `act`."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, workspace: str, *args: Any, **kwargs: Any) -> Answer:
            if not request.user.is_authenticated:
                return _to_sign_in(request)
            visit = cast(Visit, request)
            visit.membership = _membership(visit, workspace)
            role = visit.membership.role
            visit.may = {one.name.lower(): may(role, one) for one in Act}
            if not may(role, act):
                raise PermissionDenied(f"Your role here is {role}: it does not {act.value}.")
            answer = view(visit, *args, **kwargs)
            add_never_cache_headers(answer)
            return answer

        guarded.act = act  # type: ignore[attr-defined]
        return guarded

    return guard


def see_other(url: str) -> HttpResponseRedirect:
    """303: the act is done; look at this page now."""
    return HttpResponseRedirect(url, status=303)


def _membership(request: Visit, slug: str) -> Membership:
    found = Membership.objects.select_related("workspace").filter(workspace__slug=slug, user=request.user).first()
    if found is None:
        raise Http404("no such workspace, or you are no member of it")
    return found


def _to_sign_in(request: HttpRequest) -> Answer:
    """The sign-in page; a fragment's request sends the whole page there, never the form into the fragment."""
    htmx = cast(Visit, request).htmx
    if not htmx:
        return redirect_to_login(request.get_full_path())
    page = urlsplit(htmx.current_url or "/")
    return HttpResponseClientRedirect(redirect_to_login(page.path)["Location"])
