"""Signatures of callbacks, by the Standard Webhooks scheme. Pure: the clock is a parameter.

What is signed is `id.timestamp.body`, every byte of the body as it came; the signature is `v1,` and the base64 of its HMAC-SHA256.
A header may carry several signatures, and a channel two secrets, so that either side can change its secret without a gap.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence

OLDEST = 300.0  # seconds between their clock and ours, either way: the tolerance of the scheme's own libraries
PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64  # bytes of a secret, as the scheme asks (S50)
MOST_SECRETS = 2  # the new one and the old one
MOST_SIGNATURES = 8  # a longer list is not read to its end
TIMESTAMP = re.compile(r"[0-9]{1,12}")


def read_secrets(text: str) -> list[bytes]:
    """The keys that `whsec_… whsec_…` holds, one or two. Raises ValueError with a sentence for whoever typed it."""
    words = re.split(r"[\s,]+", text.strip())
    if len(words) > MOST_SECRETS:
        raise ValueError("holds at most two secrets, the new one and the old one, with a blank between them")
    return [_read_secret(word) for word in words]


def sign(event_id: str, timestamp: str, body: bytes, key: bytes) -> str:
    """One signature, as it stands in the header."""
    signed = b".".join((event_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def is_signed(signatures: str, *, event_id: str, timestamp: str, body: bytes, keys: Sequence[bytes]) -> bool:
    """True when one of the signatures in the header is by one of the keys; all are compared, each in constant time."""
    right = [sign(event_id, timestamp, body, key).encode() for key in keys]
    given = [word.encode() for word in signatures.split(" ", MOST_SIGNATURES)[:MOST_SIGNATURES]]
    compared = [hmac.compare_digest(one, other) for one in right for other in given]
    return any(compared)


def is_timely(timestamp: str, *, now: float) -> bool:
    """True for whole seconds since 1970 that are near enough to `now`; anything else is as good as too old."""
    return bool(TIMESTAMP.fullmatch(timestamp)) and abs(now - int(timestamp)) <= OLDEST


def _read_secret(word: str) -> bytes:
    if not word.startswith(PREFIX):
        raise ValueError(f"must begin with {PREFIX}, as in {PREFIX}MfKQ… (base64 of 24 to 64 random bytes)")
    try:
        key = base64.b64decode(word.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(f"must be base64 after {PREFIX}") from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(f"must hold {SHORTEST} to {LONGEST} bytes, not {len(key)}")
    return key
