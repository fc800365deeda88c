"""HTTP/1.1 to one origin, over kept-open connections, telling what a client library hides: whether a byte was written, and the
response byte for byte as it was received.

One exchange is one attempt: nothing is repeated, redirected, decoded or read through a proxy.
"""

import asyncio
import functools
import re
import ssl
import time
from collections.abc import Mapping
from math import inf
from typing import cast
from urllib.parse import quote, urlsplit

import idna

from effects import failpoints
from effects.providers.base import Lost, NotSent
from effects.providers.outbound import addresses_of
from effects.providers.responses import ResponseReader

CONNECT_SECONDS = 5.0
RESPONSE_LIMIT = 1_000_000  # bytes; a longer response is cut, and no receipt is read from it
KEEP_OPEN_SECONDS = 4.0  # under the usual 5 s of servers, so that we seldom write to a connection they are closing

OURS = frozenset(
    {"host", "user-agent", "accept-encoding", "connection", "content-length", "transfer-encoding", "expect", "upgrade"}
)
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\t -~\x80-\xff]*")


class Wire:
    """The connections to one origin. Raises ValueError when the address or a header cannot be used."""

    def __init__(self, url: str, *, headers: Mapping[str, str], loopback: bool) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of an HTTP service")
        host = parts.hostname
        self._host = host if host.isascii() else idna.encode(host, uts46=True).decode()
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = _tls() if parts.scheme == "https" else None
        self._loopback = loopback
        bracketed = f"[{self._host}]" if ":" in self._host else self._host
        own = {
            "Host": f"{bracketed}:{parts.port}" if parts.port else bracketed,
            "User-Agent": "Signoff",
            "Accept-Encoding": "identity",
        }
        self._head = b"".join(_line(name, value) for name, value in own.items()) + header_lines(headers)
        self._idle: list[tuple[Connection, float]] = []  # the one used last is last

    async def exchange(
        self, method: str, path: str, *, seconds: float, head: bytes = b"", body: bytes = b"", not_after: float = inf
    ) -> bytes:
        """One request, and the response as received. `head` holds further header lines, each with its CRLF.

        Raises NotSent when nothing was written, because no connection came or it came later than `not_after` on the monotonic
        clock; Lost, with what did come, when something was written and no whole response came back within `seconds`.
        """
        ends = time.monotonic() + seconds
        connection = self._kept() or await self._dialled(min(CONNECT_SECONDS, seconds))
        try:
            failpoints.reach("first-byte")
            now = time.monotonic()
            if now > not_after or now >= ends:
                raise NotSent("the connection came too late; nothing was written")
            start = f"{method} {path} HTTP/1.1\r\n".encode("ascii")
            length = b"Content-Length: %d\r\n\r\n" % len(body) if method != "GET" else b"\r\n"
            raw = await connection.exchange(b"".join((start, self._head, head, length, body)), ends - now)
        except BaseException:
            connection.abort()
            raise
        self._idle.append((connection, time.monotonic()))
        return raw

    async def close(self) -> None:
        """Close every connection that is not in use."""
        for connection, _ in self._idle:
            connection.abort()
        self._idle.clear()

    def _kept(self) -> "Connection | None":
        oldest = time.monotonic() - KEEP_OPEN_SECONDS
        while self._idle:
            connection, since = self._idle.pop()
            if connection.is_fit and since > oldest:
                return connection
            connection.abort()
        return None

    async def _dialled(self, seconds: float) -> "Connection":
        """A new connection to the first address that takes one."""
        try:
            async with asyncio.timeout(seconds):
                addresses = await addresses_of(self._host, self._port, loopback=self._loopback)
                for address in addresses[:-1]:
                    try:
                        async with asyncio.timeout(seconds / len(addresses)):
                            return await self._connect(address)
                    except OSError:
                        continue
                return await self._connect(addresses[-1])
        except TimeoutError:
            raise NotSent(f"no connection to {self._host} within {seconds:g} s") from None
        except OSError as error:
            raise NotSent(f"{type(error).__name__}: {error}") from error

    async def _connect(self, address: str) -> "Connection":
        name = self._host if self._tls else None
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, address, self._port, ssl=self._tls, server_hostname=name)
        return connection


class Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self) -> None:
        self.is_fit = True  # for another exchange
        self._reader = ResponseReader()
        self._raw = bytearray()
        self._response: asyncio.Future[bytes] | None = None

    async def exchange(self, request: bytes, seconds: float) -> bytes:
        """Write the request; the response as received. Raises Lost."""
        loop = asyncio.get_running_loop()
        self._reader, self._raw, self._response = ResponseReader(), bytearray(), loop.create_future()
        timer = loop.call_later(seconds, self._lose, f"no whole response within {seconds:.3g} s")
        self._transport.write(request)
        try:
            await failpoints.flushed("last-byte", self._transport.get_write_buffer_size)
            return await self._response
        finally:
            timer.cancel()
            self._response = None

    def abort(self) -> None:
        """Close at once. Nothing is expected any more."""
        self.is_fit = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._response.done():
            self.abort()  # nobody asked: what comes next could be taken for the answer to another request
            return
        self._raw += data
        try:
            self._reader.feed(data)
        except ValueError as error:
            self._lose(f"the response is not HTTP: {error}")
            return
        if len(self._raw) > RESPONSE_LIMIT:
            self._lose(f"the response is longer than {RESPONSE_LIMIT} bytes")
        elif self._reader.response:
            self._answer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_fit = False
        if exc is None:
            self._reader.end()
        if self._reader.response:
            self._answer()
        else:
            self._lose(f"the connection was lost: {exc}" if exc else "the connection was closed before a whole response came")

    def _answer(self) -> None:
        self.is_fit = self.is_fit and not self._reader.ends_connection
        if self._response and not self._response.done():
            self._response.set_result(bytes(self._raw))

    def _lose(self, note: str) -> None:
        if self._response and not self._response.done():
            self._response.set_exception(Lost(note, bytes(self._raw[:RESPONSE_LIMIT])))
        self.abort()


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Headers ready to be written. Raises ValueError for one that is not ours to set or would break out of its line."""
    for name, value in headers.items():
        if not NAME.fullmatch(name) or name.lower() in OURS:
            raise ValueError(f"{name!r} cannot be sent as a header")
        if not VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} holds characters that cannot be sent")
    return b"".join(_line(name, value) for name, value in headers.items())


def path_of(url: str) -> str:
    """Path and query of an address, as they are written on the wire."""
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=-._~")
    return f"{path}?{quote(parts.query, safe="/?%:@!$&'()*+,;=-._~")}" if parts.query else path


def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("latin-1")


@functools.cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
