"""NDJSON and CSV, as they stream in, turned into rows. Nothing is ever held but the line at hand.

Both readers yield a NewRow or a RowError per line and go on after an error, so that an agent sees all that is wrong at once.
Where the file itself breaks (a quote never closed, bytes that are no UTF-8 inside CSV), the last item says where.
"""

import csv
import json
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from accounts.errors import Refused
from approvals.incoming import FIELDS, MARK, MOST_ERRORS, TOLD, NewRow, RowError, columns_of, errors_of
from audit.cells import text_of

LONGEST_LINE = 1_000_000  # bytes of one line of NDJSON, or of one record of CSV
BOM = b"\xef\xbb\xbf"

# One number for the whole process; no field can be longer than the record it stands in.
csv.field_size_limit(LONGEST_LINE)

type Item = NewRow | RowError


class RowsRefused(Refused):
    """A load with errors; nothing of it was kept. `errors` holds the first of them, `count` says how many there are."""

    def __init__(self, errors: list[RowError], count: int) -> None:
        super().__init__(f"{count} {'error' if count == 1 else 'errors'} in these rows, so none was kept")
        self.errors = errors
        self.count = count


class Errors:
    """The errors of one load: all counted, the first hundred kept."""

    def __init__(self) -> None:
        self.first: list[RowError] = []
        self.count = 0

    def add(self, error: RowError) -> None:
        self.count += 1
        if len(self.first) < MOST_ERRORS:
            self.first.append(error)

    def refuse_if_any(self) -> None:
        """Raise RowsRefused when there is one."""
        if self.count:
            raise RowsRefused(self.first, self.count)


def read_ndjson(chunks: Iterable[bytes]) -> Iterator[Item]:
    """One row per line of JSON; empty lines are skipped but counted."""
    for number, line in _lines(chunks):
        if isinstance(line, RowError):
            yield line
            continue
        if not line.strip():
            continue
        try:
            line.decode()  # said apart from bad JSON: the position of a bad byte is worth knowing
            yield NewRow.model_validate_json(line).at(number)
        except UnicodeDecodeError as error:
            yield _not_utf8(error, number)
        except ValidationError as refusal:
            yield from errors_of(refusal, number)


def read_csv(chunks: Iterable[bytes]) -> Iterator[Item]:
    """One row per record, by the names in the header line. Line breaks inside quotes belong to their record.

    A header line that begins with `position` is that of an export of ours: its cells lose their guard, and what became of each row is
    left aside, so that the rows come back as they were.
    """
    source = _Records(chunks)
    reader = csv.reader(source, strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            began = source.next_record()
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = cells
                errors = _errors_of_header(header, began)
                yield from errors
                if errors:
                    return
            else:
                yield from _row_of(header, [text_of(cell) for cell in cells] if header[0] == MARK else cells, began)
    except csv.Error as error:
        yield RowError(source.began, "", f"is not CSV: {error}")
    except _Unreadable as unreadable:
        yield unreadable.error


def _errors_of_header(header: list[str], line: int) -> list[RowError]:
    known = ", ".join(FIELDS)
    taken = (*FIELDS, MARK, *TOLD) if header[0] == MARK else FIELDS
    unknown = [name for name in header if name not in taken]
    errors = [RowError(line, name[:80], f"is not a column of a row; a row has {known}") for name in unknown]
    twice = {name for name in header if header.count(name) > 1 and name in FIELDS}
    errors += [RowError(line, name, "stands twice in the header line") for name in sorted(twice)]
    if "target" not in header:
        errors.append(RowError(line, "target", "is missing from the header line"))
    return errors


def _row_of(header: list[str], cells: list[str], line: int) -> list[Item]:
    if len(cells) != len(header):
        return [RowError(line, "", f"has {len(cells)} cells where the header line has {len(header)}")]
    values = columns_of(dict(zip(header, cells, strict=True)))
    if isinstance(values, RowError):
        return [RowError(line, values.field, values.error)]
    for name in ("payload", "record"):
        if name in values:
            try:
                values[name] = json.loads(values[name])
            except (ValueError, RecursionError):
                return [RowError(line, name, "is not JSON")]
    try:
        return [NewRow.model_validate(values).at(line)]
    except ValidationError as refusal:
        return list(errors_of(refusal, line))


class _Unreadable(Exception):
    """The CSV cannot be read any further."""

    def __init__(self, error: RowError) -> None:
        super().__init__(error.error)
        self.error = error


class _Records:
    """Decoded lines for the CSV reader, which knows at which line the record at hand began and how long it is."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._lines = _lines(chunks)
        self._size = 0
        self._line = 0
        self.began = 1

    def next_record(self) -> int:
        """The line at which the record just read began; the next line read begins another."""
        began, self.began, self._size = self.began, self._line + 1, 0
        return began

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self._line = number
            if isinstance(line, RowError):
                raise _Unreadable(line)
            self._size += len(line)
            if self._size > LONGEST_LINE:
                raise _Unreadable(_too_long(self.began))
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise _Unreadable(_not_utf8(error, number)) from None


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes | RowError]]:
    """Numbered lines with their line ends; in place of one that is too long, its error."""
    number, held, too_long = 1, bytearray(), False
    for chunk in _without_bom(chunks):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            held += chunk[start : end + 1]
            yield number, (_too_long(number) if too_long or len(held) > LONGEST_LINE else bytes(held))
            number, held, too_long, start = number + 1, bytearray(), False, end + 1
        held += chunk[start:]
        if len(held) > LONGEST_LINE:
            held, too_long = bytearray(), True
    if held or too_long:
        yield number, (_too_long(number) if too_long else bytes(held))


def _without_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    first = b""
    source = iter(chunks)
    for chunk in source:
        first += chunk
        if len(first) >= len(BOM):
            break
    yield first.removeprefix(BOM)
    yield from source


def _too_long(line: int) -> RowError:
    return RowError(line, "", f"is longer than {LONGEST_LINE:,} bytes")


def _not_utf8(error: UnicodeDecodeError, line: int) -> RowError:
    return RowError(line, "", f"is not UTF-8: byte {error.start + 1} of the line cannot be read")
