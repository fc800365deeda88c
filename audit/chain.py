"""The one door by which the record is written. Called inside the transaction of the act itself."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from audit.models import Entry


@dataclass(frozen=True)
class Actor:
    """Who acts, as the record names them: kind is human, token, machine or command."""

    kind: str
    id: int | None
    name: str
    address: str = ""


def append(
    act: str,
    *,
    workspace_id: int,
    by: Actor,
    on: tuple[str, int, str],
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    digest: str = "",
) -> Entry:
    """Write one entry and return it. `on` is (kind, id, name) of what was acted on.

    Raises RuntimeError outside a transaction: an act and its entry are kept or lost together.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"the entry for {act!r} must be written in the transaction of the act")
    kind, object_id, name = on
    return Entry.objects.create(
        workspace_id=workspace_id,
        actor_kind=by.kind,
        actor_id=by.id,
        actor_name=by.name,
        address=by.address,
        act=act,
        object_kind=kind,
        object_id=object_id,
        object_name=name[:300],
        reason=reason,
        before=before or {},
        after=after or {},
        digest=digest,
    )
