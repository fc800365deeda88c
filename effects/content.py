"""What is to be sent to one target, and its digest. Pure.

The digest is taken when the row is proposed, shown to the reviewer as part of the plan's digest, and taken again by the worker
before the first byte. Fields are length-prefixed, so that no two contents share one text to be hashed.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

LABEL = b"signoff content 1"


@dataclass(frozen=True, slots=True)
class Content:
    """One finished letter, or one payload for a tool that is not mail. `to` is the target as resolved."""

    to: str
    subject: str = ""
    text: str = ""
    html: str = ""
    payload: Any = None
    amount_minor: int | None = None

    def digest(self) -> str:
        """`sha256:` and 64 hex digits over every field."""
        payload = "" if self.payload is None else canonical_json(self.payload)
        amount = "" if self.amount_minor is None else str(self.amount_minor)
        return digest_of(LABEL, self.to, self.subject, self.text, self.html, payload, amount)


def canonical_json(value: Any) -> str:
    """One text per JSON value: keys sorted, no blanks, no floats that are not numbers (ValueError)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(label: bytes, *fields: str) -> str:
    """SHA-256 over a label and length-prefixed UTF-8 fields, as `sha256:` and 64 hex digits."""
    hasher = hashlib.sha256(label)
    for field in fields:
        encoded = field.encode()
        hasher.update(b"%d:" % len(encoded))
        hasher.update(encoded)
    return f"sha256:{hasher.hexdigest()}"
