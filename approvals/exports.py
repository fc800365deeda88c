"""The rows of a plan as they were handed in, and what became of each, for a file. Read a page at a time, however many there are."""

from collections.abc import Iterator
from typing import Any

from approvals.incoming import FIELDS, MARK, TOLD
from approvals.models import Plan
from approvals.queries import whole_rows

AT_A_TIME = 50  # rows in memory: each may be a megabyte
HEADER = [MARK, *FIELDS, *TOLD]


def exported(plan: Plan) -> Iterator[list[Any]]:
    """The cells of each row in order, as `HEADER` names them. An import takes the file back: the text is the same again."""
    after, more = 0, True
    while more:
        rows = whole_rows(plan, after=after, most=AT_A_TIME)
        yield from map(list, rows)
        after, more = rows[-1][0] if rows else after, len(rows) == AT_A_TIME
