"""CSV that a spreadsheet opens as inert text: RFC 4180 quoting, and no cell that could run as a formula."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import StreamingHttpResponse

# What a spreadsheet may take for the start of a formula; the last is the full-width equals sign, which some fold.
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def cell(value: Any) -> Any:
    """Numbers as they are; text that could start a formula behind an apostrophe."""
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(STARTS_A_FORMULA) else text


def as_csv(name: str, header: list[str], rows: Iterable[list[Any]]) -> StreamingHttpResponse:
    """A download called `name`, written row by row."""

    def lines() -> Iterator[str]:
        writer = csv.writer(_Echo())
        yield "\ufeff" + writer.writerow(header)  # the mark tells spreadsheets that this is UTF-8
        for row in rows:
            yield writer.writerow([cell(value) for value in row])

    answer = StreamingHttpResponse(lines(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
