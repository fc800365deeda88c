"""What waits for the person on whose page the frame is drawn."""

from typing import Any

from django import template

from accounts.roles import Act, may
from approvals.queries import proposed_count
from effects.models import Pause
from effects.queries import halts, news_count, open_counts

register = template.Library()


@register.simple_tag(takes_context=True)
def what_waits(context: template.Context) -> dict[str, int]:
    """`inbox`: all that this person may act on, late news too; `desk`: unknown and stranded effects. Empty outside a workspace."""
    request: Any = context.get("request")
    membership = getattr(request, "membership", None)
    if membership is None:
        return {}
    desk = sum(open_counts(membership.workspace_id).values())
    mine = proposed_count(membership.workspace_id, user_id=membership.user_id) if may(membership.role, Act.DECIDE) else 0
    theirs = desk + news_count(membership.workspace_id) if may(membership.role, Act.RESOLVE) else 0
    return {"inbox": mine + theirs, "desk": desk}


@register.simple_tag(takes_context=True)
def what_is_halted(context: template.Context) -> list[Pause]:
    """The pauses that hold all of this workspace; empty outside a workspace."""
    membership = getattr(context.get("request"), "membership", None)
    return halts(membership.workspace_id) if membership else []
