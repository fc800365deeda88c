"""Rows on their way into a draft: each gets its resolved target, its key and the digest of its content."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from approvals.incoming import NewRow, RowError
from approvals.intake import Errors
from approvals.models import Plan
from effects.channels import setting
from effects.content import Content, canonical_json
from effects.keys import UnusableKey, effect_key, normalize_target, scope_of

MOST_ROWS = 200_000  # rows of one plan


def finished(plan: Plan, rows: Iterable[NewRow | RowError], *, errors: Errors, lines: "array[int]") -> Iterator[tuple[Any, ...]]:
    """The columns of each row, with its key and digest, as `copy` in `sql/plans.sql` takes them.

    Errors go to `errors`; after the first one rows are only looked at, not given on. `lines` gets the line of each row.
    """
    kind = str(setting(plan.channel, "target_kind"))
    scope = scope_of(plan.workspace.slug, plan.currency, plan.scope)
    for row in rows:
        if isinstance(row, RowError):
            errors.add(row)
            continue
        position = plan.row_count + len(lines) + 1
        if position > MOST_ROWS:
            errors.add(RowError(row.line, "", f"is one row too many: a plan holds at most {MOST_ROWS:,}"))
            return
        if row.amount_minor is not None and not plan.currency:
            errors.add(RowError(row.line, "amount_minor", "needs a currency: open the plan with one"))
            continue
        try:
            target = normalize_target(row.target, kind)
            key = effect_key(plan.event_id, plan.tool, target, row.amount_minor, scope)
        except UnusableKey as error:
            errors.add(RowError(row.line, "target", str(error)))
            continue
        if errors.count:
            continue
        lines.append(row.line or position)
        content = Content(target, row.subject, row.text, row.html, row.payload, row.amount_minor)
        yield (
            plan.pk, position, row.target, target, key, 0, row.amount_minor, row.subject, row.text, row.html,
            _json(row.payload), _json(row.record), content.digest(), "",
        )  # fmt: skip


def _json(value: Any) -> str | None:
    return None if value is None else canonical_json(value)


def tell_duplicates(shared: Iterable[tuple[str, list[int], int]], plan: Plan, *, errors: Errors, lines: "array[int]") -> None:
    """An error for each target that this load holds twice: (target, positions of its first two rows, number of its rows)."""
    for target, (first, second), count in shared:
        one, other = (lines[position - plan.row_count - 1] for position in (first, second))
        more = f", and {count - 2} more" if count > 2 else ""
        errors.add(RowError(other, "target", f"is the same target as line {one} ({target}){more}; each gets one row"))
