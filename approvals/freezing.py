"""What a plan is at this moment, as one digest over everything that a reviewer is shown and a worker sends."""

from approvals.digest import PlanShape, RowShape, plan_digest
from approvals.models import Plan, Row


def digest_now(plan: Plan) -> str:
    """The digest of the plan and its rows as the database holds them at this moment, read in a stream."""
    current = Plan.objects.select_related("channel").get(pk=plan.pk)
    rows = Row.objects.filter(plan=plan).order_by("position")
    shapes = rows.values_list("position", "target", "key", "epoch", "amount_minor", "content_digest", "excluded_reason").iterator(
        chunk_size=5000
    )
    return plan_digest(
        PlanShape(
            title=current.title,
            rationale=current.rationale,
            tool=current.tool,
            channel_id=current.channel_id,
            channel=current.channel.slug,
            provider=current.channel.provider,
            settings=current.channel.settings,
            event_id=current.event_id,
            scope=current.scope,
            currency=current.currency,
            version=current.version,
        ),
        (RowShape(*shape) for shape in shapes),
    )
