"""The rows of a plan as they were handed in, and what became of each, for a file. Read a page at a time, however many there are."""

from collections.abc import Iterator
from typing import Any

from accounts.paging import page_of
from approvals.incoming import FIELDS, MARK, TOLD
from approvals.models import Plan
from approvals.queries import with_outcome
from effects.content import canonical_json
from effects.models import Effect

AT_A_TIME = 50  # rows in memory: each may be a megabyte
HEADER = [MARK, *FIELDS, *TOLD]


def exported(plan: Plan) -> Iterator[list[Any]]:
    """The cells of each row in order, as `HEADER` names them. An import takes the file back: the text is the same again."""
    after: int | None = 0
    while after is not None:
        page = page_of(with_outcome(plan), after=after, by="position", size=AT_A_TIME)
        found: list[Any] = page.rows  # each with `effect_id` and `figure`
        effects = Effect.objects.only("attempt", "receipt", "reason").in_bulk([row.effect_id for row in found if row.effect_id])
        for row in found:
            yield _cells(row, effects.get(row.effect_id))
        after = page.more


def _cells(row: Any, effect: Effect | None) -> list[Any]:
    return [
        row.position, row.target_typed, row.subject, row.text, row.html, _json(row.payload), row.amount_minor, _json(row.record),
        row.target, row.key, row.epoch, row.figure, effect and effect.attempt, effect and effect.receipt,
        row.excluded_reason or (effect and effect.reason),
    ]  # fmt: skip


def _json(value: Any) -> str | None:
    return None if value is None else canonical_json(value)
