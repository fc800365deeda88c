"""Late news: a person says that they have seen it, and what they did about it. The effect stays as it is."""

from django.db import transaction
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.roles import Act
from audit import chain
from effects.actors import Human
from effects.models import Callback, Effect
from effects.news import Outcome


@transaction.atomic(durable=True)
def see(effect: Effect, callback_id: int, *, by: Human, reason: str) -> Callback:
    """Take one piece of news off the inbox. Raises LostRace when it is no news (any more), Refused without a right or a reason."""
    if not reason.strip():
        raise Refused("Say what you did about it: it stands in the record.")
    if effect.workspace_id != by.workspace_id or not by.may(Act.RESOLVE):
        raise Refused(f"Your role may not {Act.RESOLVE.value}.")
    rows = Callback.objects.filter(pk=callback_id, effect=effect, workspace_id=by.workspace_id)
    news = rows.filter(outcome=Outcome.CONTRARY.value, seen_at=None)
    if news.update(seen_by=by.actor.name, seen_at=Now(), seen_reason=reason) != 1:
        raise LostRace(_who(rows.first()), effect)
    seen = rows.get()
    chain.append(
        "late news seen",
        workspace_id=effect.workspace_id,
        by=by.actor,
        on=("effect", effect.pk, effect.target),
        reason=reason,
        before={"state": effect.state},
        after={"callback": seen.pk, "told": seen.kind, "event": seen.event_id},
    )
    return seen


def _who(callback: Callback | None) -> str:
    if callback is None:
        return "This effect has no such callback."
    return f"{callback.seen_by} has seen this." if callback.seen_at else "This is no news."
