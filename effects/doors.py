"""The person behind a request, as verbs want them."""

from accounts.doors import Visit
from effects.actors import Human


def human_of(request: Visit) -> Human:
    """Who acts, in which workspace, from which address."""
    return Human(request.user, request.membership.workspace_id, str(request.META.get("REMOTE_ADDR", "")))
