"""Secrets of channels, encrypted at rest with the newest of SIGNOFF_ENCRYPTION_KEYS; older keys still open."""

import json
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

CALLBACK = "callback_secret"  # signs what a provider calls back with; it is no provider's business to be sent it


def seal(secrets: dict[str, str]) -> str:
    """The secrets as one opaque text; an empty text for none."""
    return _keys().encrypt(json.dumps(secrets).encode()).decode() if secrets else ""


def unseal(sealed: str) -> dict[str, str]:
    """The secrets in the clear. Raises ValueError when no key opens them."""
    if not sealed:
        return {}
    try:
        opened: dict[str, str] = json.loads(_keys().decrypt(sealed.encode()))
    except InvalidToken:
        raise ValueError("no key in SIGNOFF_ENCRYPTION_KEYS opens this channel's secrets") from None
    return opened


def for_calls(secrets: Mapping[str, str]) -> dict[str, str]:
    """The secrets that go out with calls: all but our own, which never becomes a header."""
    return {name: value for name, value in secrets.items() if name != CALLBACK}


def _keys() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SIGNOFF_ENCRYPTION_KEYS])
