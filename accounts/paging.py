"""Keyset paging: a page starts after the last row of the one before, so page 2,000 costs what page 1 costs.

Lists never count themselves; they say only whether there is more.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

SIZE = 50


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
