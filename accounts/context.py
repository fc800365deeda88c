"""What every page's frame needs: the workspace, the person's role there, and what they may do."""

from typing import Any

from django.http import HttpRequest


def place(request: HttpRequest) -> dict[str, Any]:
    """The workspace of this page, if the view placed the request in one (see `accounts.doors`)."""
    membership = getattr(request, "membership", None)
    return {"workspace": membership.workspace, "role": membership.role} if membership else {}
