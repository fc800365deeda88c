"""CSV that a spreadsheet opens as inert text: RFC 4180 quoting, and no cell that could run as a formula."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import StreamingHttpResponse

from audit.cells import cell

PIECE = 64 * 1024  # characters given on at once: a hundred thousand short lines are not a hundred thousand writes


def as_csv(name: str, header: list[str], rows: Iterable[list[Any]]) -> StreamingHttpResponse:
    """A download called `name`, written as the rows come."""
    answer = StreamingHttpResponse(_pieces(header, rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _pieces(header: list[str], rows: Iterable[list[Any]]) -> Iterator[str]:
    held = io.StringIO(newline="")
    held.write("\ufeff")  # tells spreadsheets that this is UTF-8
    writer = csv.writer(held)
    writer.writerow(header)
    for row in rows:
        writer.writerow([cell(value) for value in row])
        if held.tell() >= PIECE:
            yield held.getvalue()
            held.seek(0)
            held.truncate()
    yield held.getvalue()
