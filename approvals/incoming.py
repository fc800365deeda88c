"""One row as an agent hands it in: its fields, their types and limits, and what is said when they do not fit. Pure."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from effects.content import canonical_json

LONGEST_SUBJECT = 998  # characters: what RFC 5322 allows in one line
LARGEST_PART = 512_000  # bytes of a text or of an HTML part
LARGEST_AMOUNT = 2**63 - 1  # minor units: what the database holds
MOST_ERRORS = 100  # told of one load; the rest is counted

HEADER_BREAK = re.compile(r"[\r\n\0\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # whatever ends a line somewhere


@dataclass(frozen=True, slots=True)
class RowError:
    """What is wrong with one line. `field` is empty where the line as a whole cannot be read."""

    line: int
    field: str
    error: str


def _in_one_line(text: str) -> str:
    if HEADER_BREAK.search(text):
        raise PydanticCustomError("line_break", "must stand in one line: it holds a line break or a NUL character")
    return text


def _storable(text: str) -> str:
    _without_nul(text)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise PydanticCustomError("surrogate", "holds half of a character (a lone surrogate)") from None
    if size > LARGEST_PART:
        raise PydanticCustomError("too_large", f"is larger than {LARGEST_PART:,} bytes")
    return text


def _as_stored(value: JsonValue) -> JsonValue:
    """A JSON value that comes back from the database as it went in, so that its digest stays the same."""
    try:
        settled = _settled(value)
        canonical_json(settled).encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("surrogate", "holds half of a character (a lone surrogate)") from None
    except (ValueError, RecursionError):
        raise PydanticCustomError("not_json", "holds a number that is not a number, or nests too deeply") from None
    return settled


def _settled(value: JsonValue) -> JsonValue:
    # The database keeps 1e22 as digits and -0.0 as 0.0: what it would change is changed before anybody sees it.
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) >= 1e16 else value + 0.0
    if isinstance(value, str):
        return _without_nul(value)
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, dict):
        return {_without_nul(name): _settled(item) for name, item in value.items()}
    return value


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul", "holds a NUL character, which no database and no letter can carry")
    return text


Subject = Annotated[str, Field(max_length=LONGEST_SUBJECT), AfterValidator(_in_one_line), AfterValidator(_storable)]
Part = Annotated[str, AfterValidator(_storable)]
Json = Annotated[JsonValue, AfterValidator(_as_stored)]
Amount = Annotated[int, Field(ge=-LARGEST_AMOUNT, le=LARGEST_AMOUNT)]


class NewRow(BaseModel):
    """One row to come: a target, and the finished content or payload for it. `line` is where it stood in its file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    target: str
    subject: Subject = ""
    text: Part = ""
    html: Part = ""
    payload: Json = None
    amount_minor: Amount | None = None
    record: Json = None

    _line: int = PrivateAttr(default=0)

    @property
    def line(self) -> int:
        """The line at which this row began; 0 when it came from no file."""
        return self._line

    def at(self, line: int) -> "NewRow":
        """This row, marked as coming from `line`."""
        self._line = line
        return self


FIELDS = tuple(NewRow.model_fields)
# An export of a plan's rows begins with their position, and tells after the fields what became of each (approvals/exports.py).
MARK = "position"
TOLD = ("resolved", "key", "epoch", "outcome", "attempt", "receipt", "why")

SAID = {
    "missing": "is missing",
    "extra_forbidden": f"is not a field of a row; a row has {', '.join(FIELDS)}",
    "string_type": "must be text",
    "string_too_long": f"is longer than {LONGEST_SUBJECT} characters",
    "int_type": "must be a whole number of minor units, such as 1999 for 19.99",
    "int_from_float": "must be a whole number of minor units, such as 1999 for 19.99",
    "int_parsing_size": "is larger than the database can hold",
    "greater_than_equal": "is larger than the database can hold",
    "less_than_equal": "is larger than the database can hold",
    "model_type": "must be a JSON object, one per line",
    "model_attributes_type": "must be a JSON object, one per line",
}


def errors_of(refusal: ValidationError, line: int) -> list[RowError]:
    """What pydantic found, in plain words."""
    return [_error_of(detail, line) for detail in refusal.errors(include_url=False, include_input=False)]


def _error_of(detail: ErrorDetails, line: int) -> RowError:
    field = str(detail["loc"][0]) if detail["loc"] else ""
    if detail["type"] == "json_invalid":
        return RowError(line, "", f"is not JSON: {detail['ctx']['error'].replace(' at line 1 column', ' at column')}")
    return RowError(line, field[:80], SAID.get(detail["type"], detail["msg"]))


def columns_of(cells: dict[str, str]) -> dict[str, Any] | RowError:
    """A CSV line's cells as the values of a row; an empty cell is a field that is not given."""
    values: dict[str, Any] = {name: cells[name] for name in FIELDS if cells.get(name) or name == "target"}
    if "amount_minor" in values:
        if not re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", values["amount_minor"]):
            return RowError(0, "amount_minor", SAID["int_type"])
        values["amount_minor"] = int(values["amount_minor"])
    return values
