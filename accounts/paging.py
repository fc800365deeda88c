"""Keyset paging: a page starts after the last row of the one before, so page 2,000 costs what page 1 costs.

Lists never count themselves; they say only whether there is more.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

SIZE = 50
# A filter that no index serves looks through this many rows at a time, then says so and offers to look further.
STRETCH = 50_000


@dataclass(frozen=True)
class Page[T]:
    """Some rows of a list, in order. `more` is the cursor of the next page, or none on the last one."""

    rows: list[T]
    more: int | None
    first: bool


def cursor_of(text: str | None) -> int | None:
    """The cursor in a URL, or none where there is none worth the name."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def page_of[T: Any](rows: "QuerySet[T]", *, after: int | None, by: str = "-pk", size: int = SIZE) -> Page[T]:
    """One page of `rows` by the unique whole-number field `by` (a leading minus: largest first)."""
    name = by.removeprefix("-")
    if after is not None:
        rows = rows.filter(**{f"{name}__{'lt' if by.startswith('-') else 'gt'}": after})
    found = list(rows.order_by(by)[: size + 1])
    more = getattr(found[size - 1], name) if len(found) > size else None
    return Page(found[:size], more, after is None)


def stretch_of[T: Any](rows: "QuerySet[T]", wanted: Q, *, after: int | None) -> tuple[Page[T], bool]:
    """A page of those `rows` that are `wanted`, newest first, where no index leads to them.

    And whether it ends because a stretch was looked through rather than the list; its cursor is then where to look on.
    """
    floor, found = _floor(rows, after), rows.filter(wanted)
    page = page_of(found.filter(pk__gte=floor) if floor else found, after=after)
    if page.more or not floor:
        return page, False
    return Page(page.rows, floor, page.first), True


def _floor(rows: "QuerySet[Any]", after: int | None) -> int | None:
    """The row at which this stretch ends; none when the list ends first."""
    if after is not None:
        rows = rows.filter(pk__lt=after)
    floor: int | None = rows.order_by("-pk").values_list("pk", flat=True)[STRETCH : STRETCH + 1].first()
    return floor
