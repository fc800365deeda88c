"""The rows of a plan, to take away."""

from django.db import transaction
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.roles import Act
from approvals.exports import HEADER, exported
from approvals.views.plan import plan_of
from audit import chain
from audit.exports import as_csv
from effects.doors import human_of


@require_safe
@door(Act.EXPORT_PLAN)
def export(request: Visit, pk: int) -> HttpResponseBase:
    """Every row as CSV, with what became of it; that somebody took them away stands in the record."""
    plan = plan_of(request, pk)
    with transaction.atomic():
        chain.append(
            "plan exported", workspace_id=plan.workspace_id, by=human_of(request).actor, on=("plan", plan.pk, plan.title)
        )
    return as_csv(f"{request.membership.workspace.slug}-plan-{plan.pk}.csv", HEADER, exported(plan))
