"""Asking a provider over HTTP whether an effect exists, and reading a receipt out of what it says."""

import ipaddress
import json
from typing import Any
from urllib.parse import urlsplit

from effects.providers.base import Account, Answer, BadSettings, Lost, NotSent, Sighting
from effects.providers.outbound import Forbidden, check_address
from effects.providers.responses import Response, read_response
from effects.providers.wire import Wire, path_of

ABSENT = {404, 410}
SUCCEEDED = {"succeeded", "success", "completed", "complete", "done", "delivered", "accepted"}
FAILED = {"failed", "failure", "rejected", "canceled", "cancelled", "error", "expired"}


async def ask(url: str, *, wire: Wire, field: str, seconds: float) -> Sighting:
    """GET `url`: a receipt in `field` of a 200 is proof, 404 and 410 say absent, and anything else says nothing."""
    raw, response = await _get(url, wire, seconds)
    if response is None:
        return Sighting(Answer.INCONCLUSIVE, raw=raw)
    receipt = receipt_in(response.body, field) if response.status == 200 else ""
    if receipt:
        return Sighting(Answer.FOUND, receipt, raw)
    return Sighting(Answer.ABSENT if response.status in ABSENT else Answer.INCONCLUSIVE, raw=raw)


async def follow(url: str, *, wire: Wire, field: str, state_field: str, seconds: float) -> Sighting:
    """GET the address of an operation that was accepted: only a plain word in `state_field` decides, and anything else says nothing."""
    raw, response = await _get(url, wire, seconds)
    if response is None:
        return Sighting(Answer.INCONCLUSIVE, raw=raw)
    state = receipt_in(response.body, state_field).casefold() if response.status == 200 else ""
    receipt = receipt_in(response.body, field)
    if state in SUCCEEDED and receipt:
        return Sighting(Answer.FOUND, receipt, raw)
    return Sighting(Answer.REFUSED if state in FAILED else Answer.INCONCLUSIVE, raw=raw)


async def _get(url: str, wire: Wire, seconds: float) -> tuple[bytes, Response | None]:
    """The response as received, and read; none read when no whole one came, with what came or the reason in its place."""
    try:
        raw = await wire.exchange("GET", path_of(url), seconds=seconds)
    except NotSent as error:
        return str(error).encode(), None
    except Lost as error:
        return error.raw or str(error).encode(), None
    return raw, read_response(raw)


def receipt_in(body: bytes, field: str) -> str:
    """The receipt in a JSON answer, or nothing: a body that cannot be read, or has none, is no proof."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    value = answer.get(field) if isinstance(answer, dict) else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else ""


def checked_url(name: str, url: str, account: Account) -> str:
    """The setting as it is. Raises BadSettings unless it is an address that this account may call."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadSettings(f"{name} is no address: {error}") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.password or port == 0:
        raise BadSettings(f"{name} must be a full address such as https://api.example.com/messages, not {url!r}")
    if parts.scheme == "http" and not account.loopback:
        raise BadSettings(f"{name} must begin with https:// (plain http is for a local start with DEBUG=1)")
    try:
        ipaddress.ip_address(parts.hostname)
    except ValueError:
        return url  # a name: its addresses are checked when it is dialled
    try:
        check_address(parts.hostname, loopback=account.loopback)
    except Forbidden as error:
        raise BadSettings(f"{name}: {error}") from None
    return url
