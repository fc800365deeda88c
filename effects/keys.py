"""The key: which effect this is, in the business's own terms. Pure.

A key is made of the event, the tool, the resolved target, the amount in integer minor units, and the scope.
There is no parameter for generated text: two drafts of one letter are one effect. `tests/effects/key_vectors.json`
pins the bytes, so that other languages can build the same keys.
"""

import hashlib
import json
import unicodedata
from collections.abc import Callable

import idna

CANON_VERSION = "v1"
MAX_PART = 500


class UnusableKey(ValueError):
    """A part that cannot stand in a key; the message names the part and says what to do."""


def effect_key(event_id: str, tool: str, target: str, amount_minor: int | None = None, scope: str = "") -> str:
    """The key of one effect: `v1:` and 64 hex digits.

    `target` is taken as resolved: pass it through `normalize_target` first. Raises UnusableKey for floats, booleans,
    empty parts and parts with control characters.
    """
    if amount_minor is not None and type(amount_minor) is not int:
        raise UnusableKey(f"amount_minor must be a whole number of minor units, not {type(amount_minor).__name__}")
    shape = {
        "amount_minor": amount_minor,
        "event_id": _part("event_id", event_id),
        "scope": _part("scope", scope, may_be_empty=True),
        "target": _part("target", target),
        "tool": _part("tool", tool),
    }
    canonical = json.dumps(shape, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{CANON_VERSION}:{hashlib.sha256(canonical.encode()).hexdigest()}"


def scope_of(workspace: str, currency: str = "", scope: str = "") -> str:
    """The scope as it stands in the key: tenants and currencies cannot collide (neither part may hold a slash)."""
    if "/" in workspace or "/" in currency:
        raise UnusableKey("a workspace and a currency may not hold a slash")
    return f"{workspace}/{currency.upper() or '-'}/{scope}"


def normalize_target(target: str, kind: str = "auto") -> str:
    """The target as resolved. `kind` is `email`, `opaque`, or `auto` (an address where it has the shape of one).

    Raises UnusableKey when the target is no target of that kind.
    """
    try:
        normalizer = NORMALIZERS[kind]
    except KeyError:
        raise UnusableKey(f"target kind must be one of {', '.join(NORMALIZERS)}, not {kind!r}") from None
    return normalizer(_part("target", target))


def _part(name: str, value: object, *, may_be_empty: bool = False) -> str:
    """One part as it enters the key: composed (NFC), without blanks at its ends."""
    if not isinstance(value, str):
        raise UnusableKey(f"{name} must be text, not {type(value).__name__}")
    text = unicodedata.normalize("NFC", value).strip()
    if not text and not may_be_empty:
        raise UnusableKey(f"{name} is empty")
    if len(text) > MAX_PART:
        raise UnusableKey(f"{name} is longer than {MAX_PART} characters")
    # Cc: control characters; Cs: lone surrogates, which no encoding carries.
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise UnusableKey(f"{name} holds a control character (a line break or a tab, say)")
    return text


def _email(target: str) -> str:
    """One mailbox: full-width and composed forms folded, the case dropped, the domain in its xn-- form."""
    text = unicodedata.normalize("NFKC", target).strip()
    local, at, domain = text.rpartition("@")
    if not at or not local or not domain:
        raise UnusableKey(f"{target!r} is not an e-mail address")
    if any(character in local for character in ' ,;<>@()[]\\"') or ".." in local or local[0] == "." or local[-1] == ".":
        raise UnusableKey(f"{target!r} must be one plain address, without a name or a second address")
    try:
        host = idna.encode(domain.rstrip("."), uts46=True, transitional=False).decode()
    except idna.IDNAError as error:
        raise UnusableKey(f"{target!r} has no usable domain: {error}") from None
    return f"{local.lower()}@{host.lower()}"


def _opaque(target: str) -> str:
    return target


def _auto(target: str) -> str:
    return _email(target) if target.count("@") == 1 and " " not in target else target


NORMALIZERS: dict[str, Callable[[str], str]] = {"email": _email, "opaque": _opaque, "auto": _auto}
