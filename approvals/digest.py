"""The digest of a plan: everything a reviewer is shown, and every row, in order. Pure.

An approval is bound to it. Fields are length-prefixed and a label carries the version, so that no two plans share one
text to be hashed.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from effects.content import canonical_json

PLAN_LABEL = b"signoff plan 1"
ROW_LABEL = b"row"

# Settings of a channel that say when and how fast, not what: changing one does not change what was approved.
PACE = frozenset({"timeout", "settle_window", "window", "max_attempts", "rate"})


@dataclass(frozen=True, slots=True)
class RowShape:
    """One row as it is approved. `content` is the digest of its finished content, `excluded` why it is left out."""

    position: int
    target: str
    key: str
    epoch: int
    amount_minor: int | None
    content: str
    excluded: str = ""


@dataclass(frozen=True, slots=True)
class PlanShape:
    """A plan as it is approved, without its rows. `settings` are those of its channel."""

    title: str
    rationale: str
    tool: str
    channel_id: int
    channel: str
    provider: str
    event_id: str
    scope: str
    currency: str
    version: int
    settings: Mapping[str, Any] = field(default_factory=dict)


def plan_digest(plan: PlanShape, rows: Iterable[RowShape]) -> str:
    """`sha256:` and 64 hex digits. `rows` are taken one by one, in the order of their positions."""
    shaping = {name: value for name, value in plan.settings.items() if name not in PACE}
    hasher = hashlib.sha256(PLAN_LABEL)
    hasher.update(
        _prefixed(
            plan.title,
            plan.rationale,
            plan.tool,
            str(plan.channel_id),
            plan.channel,
            plan.provider,
            canonical_json(shaping),
            plan.event_id,
            plan.scope,
            plan.currency,
            str(plan.version),
        )
    )
    for row in rows:
        hasher.update(ROW_LABEL)
        amount = "" if row.amount_minor is None else str(row.amount_minor)
        hasher.update(_prefixed(str(row.position), row.target, row.key, str(row.epoch), amount, row.content, row.excluded))
    return f"sha256:{hasher.hexdigest()}"


def _prefixed(*fields: str) -> bytes:
    parts = []
    for text in fields:
        encoded = text.encode()
        parts.append(b"%d:%b" % (len(encoded), encoded))
    return b"".join(parts)
