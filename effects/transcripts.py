"""Raw replies made readable: as text, as JSON, as bytes. Pure; nothing here decides anything.

Whatever is shown is cut for the screen only; the bytes in the ledger stay as they came.
"""

import json
import unicodedata

from effects.providers.responses import read_response

SHOWN = 32_000  # bytes of a reply that a page shows
HEX_SHOWN = SHOWN // 4
PER_LINE = 16


def as_text(raw: bytes) -> str:
    """The bytes as UTF-8, with a mark for each that is not, and control characters made visible."""
    text = raw[:SHOWN].decode("utf-8", "replace").replace("\r\n", "\n")
    return "".join(_visible(character) for character in text)


def as_json(raw: bytes) -> str:
    """The body as indented JSON, or an empty text where it is none."""
    try:
        body = read_response(raw).body if raw.startswith(b"HTTP/") else raw
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)[:SHOWN]
    except (ValueError, RecursionError):
        return ""


def as_hex(raw: bytes) -> str:
    """Offset, bytes and letters, sixteen to a line."""
    return "\n".join(_line(raw, at) for at in range(0, min(len(raw), HEX_SHOWN), PER_LINE))


def is_cut(raw: bytes, tab: str) -> bool:
    """True when the tab shows less than all of it."""
    return len(raw) > (HEX_SHOWN if tab == "hex" else SHOWN)


def _line(raw: bytes, at: int) -> str:
    part = raw[at : at + PER_LINE]
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
    return f"{at:06x}  {part.hex(' '):<{PER_LINE * 3}} {letters}"


def _visible(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf"}:
        return character
    return f"[U+{ord(character):04X}]"
