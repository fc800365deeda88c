"""Text in CSV that a spreadsheet opens as inert text, and the way back to the text as it was. Pure."""

import re
from typing import Any

# What a spreadsheet may take for the start of a formula; the last four are full-width signs, which some fold.
FORMULA = "=+\\-@\t\r\n＝＋－＠"
# Text that already stands behind apostrophes gets one more, so that taking one away always gives back the original.
STARTS_A_FORMULA = re.compile(f"'*[{FORMULA}]")
GUARDED = re.compile(f"'+[{FORMULA}]")


def cell(value: Any) -> Any:
    """Numbers as they are; text that could start a formula behind an apostrophe."""
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if STARTS_A_FORMULA.match(text) else text


def text_of(cell: str) -> str:
    """The text that `cell` was made of."""
    return cell[1:] if GUARDED.match(cell) else cell
