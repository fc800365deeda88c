"""Any HTTP service that takes one POST for one effect and answers with a receipt.

Reply table: `faults.md` part 2 of the design papers, repeated in `docs/ledger.md`. The raw reply is the status line, the headers
and the body as received.
"""

import email.utils
import ipaddress
import json
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import aiohttp

from effects.providers.base import (
    Account,
    Answer,
    BadSettings,
    Capabilities,
    Delivery,
    Lost,
    NotSent,
    Setting,
    Sighting,
)
from effects.providers.outbound import CheckedResolver, Forbidden, check_address
from effects.verdicts import Reply, ReplyKind, Verdict, done, later, rejected, unknown

CONNECT_SECONDS = 5.0
REPLY_LIMIT = 1_000_000  # bytes of a reply; a longer one is cut and cannot be read as a receipt
KEEP_OPEN_SECONDS = 4.0  # under the usual 5 s of servers, so that we seldom write to a connection they are closing
REFUSED = {400, 401, 403, 404, 405, 410, 413, 414, 415, 422, 451}


class Http:
    """POST to the channel's `url`, with `Idempotency-Key: <key>:<epoch>` and the channel's secrets as headers."""

    name: ClassVar[str] = "http"
    capabilities: ClassVar[Capabilities] = Capabilities(
        own_key=True, look_up="by key", definite="400 to 405, 410, 413 to 415, 422, 451 and 429"
    )
    settings: ClassVar[dict[str, Setting]] = {
        "url": Setting(str, "", "where each effect is POSTed"),
        "lookup_url": Setting(str, "", "asked with {key} and {epoch} filled in: 200 with a receipt is proof"),
        "receipt_field": Setting(str, "id", "the field of the JSON answer that is the receipt"),
    }

    preamble = 0.0

    def __init__(self, account: Account) -> None:
        self._account = account
        self._url = _checked_url("url", account.settings["url"], account)
        self._lookup_url = account.settings["lookup_url"]
        if self._lookup_url:
            _checked_url("lookup_url", self._lookup_url, account)
            if "{key}" not in self._lookup_url:
                raise BadSettings("lookup_url must hold {key} (and may hold {epoch})")
        self._receipt_field: str = account.settings["receipt_field"]
        self._timeout = aiohttp.ClientTimeout(total=account.settings["timeout"], sock_connect=CONNECT_SECONDS)
        self._session: aiohttp.ClientSession | None = None

    async def send(self, delivery: Delivery) -> Reply:
        content = delivery.content
        body = {
            "to": content.to,
            "subject": content.subject,
            "text": content.text,
            "html": content.html,
            "payload": content.payload,
            "amount_minor": content.amount_minor,
            "metadata": {"key": delivery.key, "epoch": delivery.epoch, "attempt": delivery.attempt},
        }
        headers = {"Idempotency-Key": f"{delivery.key}:{delivery.epoch}", "Content-Type": "application/json"}
        raw = bytearray()
        try:
            # A connection that was kept open and died is not tried again: aiohttp repeats idempotent methods only.
            async with self._open().post(
                self._url, data=json.dumps(body, ensure_ascii=False).encode(), headers=headers, allow_redirects=False
            ) as response:
                await _receive(response, raw)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, Forbidden) as error:
            raise NotSent(_in_words(error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Lost(_in_words(error), bytes(raw)) from error
        return Reply(ReplyKind.ANSWERED, bytes(raw))

    def read(self, reply: Reply) -> Verdict:
        try:
            status, headers, body = _parse(reply.raw)
        except ValueError:
            return unknown("the reply is not HTTP")
        if status in (200, 201):
            receipt = _receipt(body, self._receipt_field)
            return done(receipt) if receipt else unknown(f"HTTP {status} without a readable {self._receipt_field!r}")
        if status == 429:
            return later("HTTP 429: too many calls", after=_seconds(headers.get("retry-after")), pauses=True)
        if status in REFUSED:
            return rejected(f"HTTP {status}: refused", pauses=status in (401, 403))
        return unknown(f"HTTP {status}: it may have happened")

    def can_look_up(self) -> bool:
        return bool(self._lookup_url)

    async def look_up(self, key: str, epoch: int) -> Sighting:
        if epoch and "{epoch}" not in self._lookup_url:
            return Sighting(Answer.INCONCLUSIVE, raw=b"lookup_url does not tell epochs apart: it has no {epoch}")
        url = self._lookup_url.replace("{key}", quote(key, safe="")).replace("{epoch}", str(epoch))
        raw = bytearray()
        try:
            async with self._open().get(url, allow_redirects=False) as response:
                await _receive(response, raw)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Sighting(Answer.INCONCLUSIVE, raw=bytes(raw) or _in_words(error).encode())
        status, _, body = _parse(bytes(raw))
        receipt = _receipt(body, self._receipt_field) if status == 200 else ""
        if receipt:
            return Sighting(Answer.FOUND, receipt, bytes(raw))
        return Sighting(Answer.ABSENT if status in (200, 404, 410) else Answer.INCONCLUSIVE, raw=bytes(raw))

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            window = self._account.settings["window"]
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=window,
                    keepalive_timeout=KEEP_OPEN_SECONDS,
                    resolver=CheckedResolver(loopback=self._account.loopback),
                ),
                timeout=self._timeout,
                headers={"User-Agent": "Signoff", "Accept-Encoding": "identity", **self._account.secrets},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                read_bufsize=2**16,
            )
        return self._session


async def _receive(response: aiohttp.ClientResponse, raw: bytearray) -> None:
    """Fill `raw` as bytes come, so that what did arrive is kept even when the rest does not."""
    version = response.version or aiohttp.HttpVersion11
    raw += f"HTTP/{version.major}.{version.minor} {response.status} {response.reason or ''}\r\n".encode(
        "utf-8", "surrogateescape"
    )
    raw += b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers) + b"\r\n"
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > REPLY_LIMIT:
            raise Lost(f"the reply is longer than {REPLY_LIMIT} bytes", bytes(raw[:REPLY_LIMIT]))


def _parse(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by lower-case name, and body. Raises ValueError when it is not HTTP."""
    head, blank, body = raw.partition(b"\r\n\r\n")
    line, _, rest = head.partition(b"\r\n")
    parts = line.split(b" ", 2)
    if not blank or len(parts) < 2 or not parts[0].startswith(b"HTTP/"):
        raise ValueError("not an HTTP reply")
    headers: dict[str, str] = {}
    for header in rest.split(b"\r\n"):
        name, _, value = header.partition(b":")
        headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()
    return int(parts[1]), headers, body


def _receipt(body: bytes, field: str) -> str:
    """The receipt in a JSON answer, or nothing: a body that cannot be read, or has none, is no proof."""
    try:
        answer: Any = json.loads(body)
    except ValueError:
        return ""
    value = answer.get(field) if isinstance(answer, dict) else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else ""


def _seconds(retry_after: str | None) -> float | None:
    """`Retry-After` in seconds: a number, or an HTTP date. Anything odd is as if it were not there."""
    if not retry_after:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        moment = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _checked_url(name: str, url: str, account: Account) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.password:
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


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
