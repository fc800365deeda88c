"""Finished letters without end, as an agent writes them: some awkward in a spreadsheet, all of them fit to be sent."""

import json
from collections.abc import Iterator
from typing import Any

OPENINGS = ("Dear", "=Dear", "+Dear", "-Dear", "@Dear", "'=Dear", "＝Dear", 'Dear "friend", dear')
BODY = "last year you ordered a book from us. A revised edition arrived this morning, and a copy is put aside for you. " * 5
PIECE = 64 * 1024


def letter(n: int) -> dict[str, Any]:
    """The n-th letter."""
    opening = OPENINGS[n % len(OPENINGS)]
    return {
        "target": f"Customer{n}@Readers.example",
        "subject": f"{opening}, the new edition is here (order {n})",
        "text": f"{opening} customer {n},\r\n\r\n{BODY}\nOrder {n}, Grüße, Marit\n",
        "html": f"<p>{opening} customer {n},</p><p>{BODY}</p><p>Order {n}, Grüße, Marit</p>",
        "amount_minor": n - 500 if n % 3 else None,
        "record": {"order": n, "note": "-1"},
    }


def ndjson(count: int) -> Iterator[bytes]:
    """So many letters, a line each, in pieces."""
    held = bytearray()
    for n in range(count):
        held += json.dumps(letter(n), ensure_ascii=False).encode() + b"\n"
        if len(held) >= PIECE:
            yield bytes(held)
            held.clear()
    yield bytes(held)
