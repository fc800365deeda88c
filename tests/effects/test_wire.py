"""One exchange over HTTP/1.1: what is certain when it fails, and the response exactly as it came."""

import asyncio
import functools
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trustme
import uvloop

from effects.providers import wire
from effects.providers.base import Lost, NotSent
from effects.providers.responses import read_response
from effects.providers.wire import Wire, header_lines, path_of


def on_a_loop[**P](test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on the kind of loop that workers have."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        uvloop.run(test(*args, **kwargs))

    return run


OK = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"id": "r"}'
CHUNKED = b'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"id\r\n7;x=y\r\n": "r"}\r\n0\r\n\r\n'
CLOSES = b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 11\r\n\r\n{"id": "r"}'
UNTIL_END = b'HTTP/1.0 200 OK\r\n\r\n{"id": "r"}'
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


@dataclass
class Script:
    """A server that reads requests and answers each with the next bytes; empty bytes close the connection."""

    answers: list[bytes]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: int = 0
    port: int = 0
    goes_on: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None  # what it does after an answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                if request.startswith(b"POST"):
                    request += await reader.readexactly(int(request.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                self.requests.append(request)
                answer = self.answers.pop(0)
                writer.write(answer)
                if not answer or answer == UNTIL_END or b"close" in answer:
                    return
                if self.goes_on:
                    await self.goes_on(writer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            self.closed += 1
            writer.close()

    def wire(self, scheme: str = "http", host: str = "127.0.0.1") -> Wire:
        return Wire(f"{scheme}://{host}:{self.port}/send", headers={"X-Secret": "s3cret"}, loopback=True)


@asynccontextmanager
async def listening(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Script]:
    script = Script(list(answers))
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, ssl=tls)
    script.port = server.sockets[0].getsockname()[1]
    try:
        yield script
    finally:
        server.close()


async def post(line: Wire, body: bytes = b"{}", seconds: float = 2.0, **options: float) -> bytes:
    return await line.exchange("POST", "/send", body=body, seconds=seconds, **options)


@pytest.mark.parametrize("answer", [OK, CHUNKED, CLOSES, UNTIL_END, INTERIM + OK, b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED])
@on_a_loop
async def test_the_response_is_kept_as_received_and_read_from_the_same_bytes(answer: bytes) -> None:
    async with listening(answer) as server:
        raw = await post(server.wire())
    assert raw == answer
    assert read_response(raw).body == b'{"id": "r"}'


@on_a_loop
async def test_a_request_is_written_once_and_whole() -> None:
    async with listening(OK) as server:
        await post(server.wire(), b'{"to": "ada@example.com"}')
        (request,) = server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /send HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}".encode(),
        b"User-Agent: Signoff",
        b"Accept-Encoding: identity",
        b"X-Secret: s3cret",
        b"Content-Length: 25",
    ]
    assert body == b'{"to": "ada@example.com"}'


@pytest.mark.parametrize(("answer", "connections"), [(OK, 1), (CHUNKED, 1), (CLOSES, 3), (UNTIL_END, 3)])
@on_a_loop
async def test_a_connection_is_kept_open_where_the_server_allows_it(answer: bytes, connections: int) -> None:
    async with listening(*[answer] * 3) as server:
        line = server.wire()
        for _ in range(3):
            await post(line)
    assert server.connections == connections


@pytest.mark.parametrize("excess", [OK.replace(b'"r"', b'"x"'), b"\0", b"HTTP/1.1 "])
@on_a_loop
async def test_an_answer_that_nobody_asked_for_is_nobodys_answer(excess: bytes) -> None:
    async with listening(OK + excess, OK) as server:
        line = server.wire()
        await post(line)
        assert read_response(await post(line)).body == b'{"id": "r"}'
    assert server.connections == 2


@on_a_loop
async def test_what_comes_while_nothing_is_asked_ends_the_connection() -> None:
    async with listening(OK, OK) as server:

        async def says_more(writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.05)
            writer.write(OK.replace(b'"r"', b'"x"'))

        server.goes_on = says_more
        line = server.wire()
        await post(line)
        await asyncio.sleep(0.2)
        assert read_response(await post(line)).body == b'{"id": "r"}'
    assert server.connections == 2


@pytest.mark.parametrize("answer", [b"", OK[:30] + b"", OK[:-1], CHUNKED[:-5], INTERIM])
@on_a_loop
async def test_a_response_that_ends_too_soon_is_lost_and_what_came_is_kept(answer: bytes) -> None:
    async with listening(answer) as server:

        async def hangs_up(writer: asyncio.StreamWriter) -> None:
            writer.close()

        server.goes_on = hangs_up
        with pytest.raises(Lost) as lost:
            await post(server.wire())
    assert lost.value.raw == answer
    assert len(server.requests) == 1


@on_a_loop
async def test_a_kept_open_connection_that_died_is_not_tried_again() -> None:
    async with listening(OK, b"", OK) as server:
        line = server.wire()
        await post(line)
        with pytest.raises(Lost):
            await post(line)
    assert len(server.requests) == 2


@on_a_loop
async def test_silence_is_lost_after_its_time() -> None:
    async with listening(b"HTTP/1.1 200 OK\r\n") as server:
        with pytest.raises(Lost, match="no whole response within") as lost:
            await post(server.wire(), seconds=0.2)
    assert lost.value.raw == b"HTTP/1.1 200 OK\r\n"


@on_a_loop
async def test_a_response_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "RESPONSE_LIMIT", 1000)
    async with listening(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 4000) as server:
        with pytest.raises(Lost, match="longer than 1000 bytes") as lost:
            await post(server.wire())
    assert len(lost.value.raw) == 1000


@on_a_loop
async def test_nobody_listens_so_nothing_was_sent() -> None:
    async with listening() as server:
        pass
    with pytest.raises(NotSent, match="Connect"):
        await post(server.wire())


@on_a_loop
async def test_nothing_is_written_over_a_connection_that_came_too_late() -> None:
    async with listening(OK) as server:
        with pytest.raises(NotSent, match="too late"):
            await post(server.wire(), not_after=time.monotonic() - 0.01)
        await asyncio.sleep(0.05)
    assert server.requests == []


@on_a_loop
async def test_giving_up_on_a_call_closes_its_connection() -> None:
    async with listening(b"HTTP/1.1 200 OK\r\n", OK) as server:
        line = server.wire()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(post(line), 0.1)
        await asyncio.sleep(0.05)
        assert server.closed == 1
        assert read_response(await post(line)).body == b'{"id": "r"}'
    assert server.connections == 2


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@on_a_loop
async def test_tls_is_for_the_name_that_was_asked_for(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with listening(OK, OK, tls=served) as server:
        with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):  # nobody vouches for this authority
            await post(server.wire("https", host))
        monkeypatch.setattr(wire, "_tls", lambda: trusting)
        if host == "localhost":
            assert await post(server.wire("https", host)) == OK
        else:
            with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):
                await post(server.wire("https", host))


@on_a_loop
async def test_private_addresses_are_not_dialled() -> None:
    async with listening(OK) as server:
        line = Wire(f"http://localhost:{server.port}/", headers={}, loopback=False)
        with pytest.raises(NotSent, match="not a public address"):
            await post(line)
    assert server.connections == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nY: b"},
        {"X": "a\nb"},
        {"X": "a\0"},
        {"X Y": "a"},
        {"": "a"},
        {"Host": "x"},
        {"content-length": "3"},
        {"X": "\u20ac"},
    ],
)
def test_a_header_that_would_break_out_of_its_line_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        header_lines(headers)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://api.example.com", "/"),
        ("https://api.example.com/v1/send?to=a%20b&c=d", "/v1/send?to=a%20b&c=d"),
        ("https://api.example.com/a b/\u00fc\r\nX: y", "/a%20b/%C3%BCX:%20y"),
        ("https://api.example.com/x#part", "/x"),
    ],
)
def test_a_path_never_leaves_its_line(url: str, path: str) -> None:
    assert path_of(url) == path
