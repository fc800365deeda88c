"""The HTTP front: POST is a call, POST /answer the answer to a challenge, GET /look a look-up, GET /count the counts, GET / the names.

Written on sockets, because what is wanted here is what a server library prevents.
"""

import asyncio
import base64
import contextlib
import json
import secrets
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from config.sandbox.behaviours import RETRY_AFTER, Behaviour, behaviour_of, names
from config.sandbox.journal import Journal, Record, marker_in, now

SLOW = 1.0  # seconds before a slow answer
DRIP = 0.05  # seconds between two bytes
LONGEST_BODY = 50_000_000
KEYS = ("ignored", "honoured", "refused")  # what is done with an Idempotency-Key that was seen before


@dataclass(frozen=True, slots=True)
class Script:
    """What is written, and what becomes of the connection: keep, close, reset or silent."""

    answer: bytes
    ending: str = "keep"
    drips: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read whole."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Front:
    """One sandbox over one journal; `seed` and `faults` are those of `behaviour_of`, `delay` comes before each answer to a call.

    `later` hears of each call that is in the journal.
    """

    journal: Journal
    seed: int = 0
    faults: float = 0.0
    delay: float = 0.0
    later: Callable[[Record], None] = lambda record: None

    async def listen(self, port: int) -> asyncio.Server:
        """The listening server, on 127.0.0.1 only."""
        return await asyncio.start_server(self._talk, "127.0.0.1", port, backlog=1024)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            while request := await _read(reader):
                script = await self._answer(request)
                await play(script, reader, writer)
                if script.ending != "keep" or request.headers.get("connection", "").lower() == "close":
                    break
        writer.close()

    async def _answer(self, request: Request) -> Script:
        if request.headers.get("host", "").rpartition(":")[0] not in ("localhost", "127.0.0.1"):
            return Script(response(403, b"This sandbox answers to localhost only.\n"))
        if request.method == "POST":
            return await (self._answered(request) if request.path == "/answer" else self._call(request))
        if request.path == "/look":
            return await self._look_up(request)
        if request.path == "/count":
            return Script(response(200, as_json(self.journal.counts())))
        listed = "\n".join(f"{front}: {' '.join(names(front))}" for front in ("http", "smtp"))
        return Script(response(200, f"Names for targets, as in accepted-500+17@sandbox.example\n{listed}\n".encode()))

    async def _call(self, request: Request) -> Script:
        """One call: decided, written down, then answered."""
        content = _content(request.body)
        target = str(content.get("to", ""))
        number = self.journal.calls[target] + 1
        behaviour = behaviour_of(target, "http", seed=self.seed, faults=self.faults).for_call(number)
        key = request.headers.get("idempotency-key", "")
        record = Record(
            "call", "http", target, behaviour.name, request.query.get("account", ""), number=number, at=now(),
            marker=marker_in(*(str(content.get(name, "")) for name in ("text", "html", "payload"))),
            keys=[key] if key else [], attempt=_attempt(content), content=content,
        )  # fmt: skip
        script = self._repeated(key, request.query.get("keys", "ignored"))
        if script is None and behaviour.challenge:
            record.receipt = f"h-{secrets.token_hex(6)}"
            script = Script(response(201, as_json({"id": record.receipt, "challenge": key})))
        elif script is None:
            record.filed = behaviour.accepts
            record.receipt = f"h-{secrets.token_hex(6)}" if behaviour.accepts else ""
            script = script_of(behaviour, record.receipt)
        else:
            record.note = "a repeat of its key: answered, not filed"
            behaviour = Behaviour(behaviour.name)
        record.answer = base64.b64encode(script.answer).decode()
        await self.journal.append(record)
        self.later(record)
        await asyncio.sleep(self.delay + (SLOW if behaviour.slow else 0.0))
        return script

    async def _answered(self, request: Request) -> Script:
        """The answer to the challenge of a call: it completes what was created, as often as it is given; or it does not."""
        created = self.journal.by_key.get(str(_content(request.body).get("challenge", "")))
        if created is None:
            return Script(response(404, b'{"error": "nobody was asked this"}'))
        behaviour = behaviour_of(created.target, "http", seed=self.seed, faults=self.faults)
        status = behaviour.challenge or 409
        record = replace(
            created, what="answer", filed=status == 200 or (behaviour.accepts and status == 503), content=None, at=now()
        )
        script = Script(
            response(status, as_json({"id": created.receipt} if status == 200 else {"error": f"told to say {status}"}))
        )
        record.answer = base64.b64encode(script.answer).decode()
        await self.journal.append(record)
        await asyncio.sleep(self.delay)
        return script

    def _repeated(self, key: str, mode: str) -> Script | None:
        """The answer to a key that was seen before, where keys count for something; nothing otherwise."""
        first = self.journal.by_key.get(key) if key and mode != "ignored" else None
        if first is None or not (first.filed or first.name.endswith("500")):  # a definite no is not remembered, a 500 is
            return None
        if mode == "refused":
            return Script(response(409, b'{"error": "this key was used before"}'))
        return Script(base64.b64decode(first.answer) or response(200, as_json({"id": first.receipt})))

    async def _look_up(self, request: Request) -> Script:
        """Whether a call was filed: the truth, late or a lie, as its target's name says."""
        asked = request.query
        key = asked.get("message_id") or f"{asked.get('key', '')}:{asked.get('epoch', '0')}"
        known = self.journal.by_key.get(key)
        lie = ""
        if known:
            lie = behaviour_of(known.target, known.front, seed=self.seed, faults=self.faults).look_up.at(now() - known.at)
        script = LIES[lie]() if lie else _truth(known)
        await self.journal.append(
            Record("look-up", "http", known.target if known else "", keys=[key], note=lie or "the truth", at=now(),
                   answer=base64.b64encode(script.answer).decode())
        )  # fmt: skip
        return script


def script_of(behaviour: Behaviour, receipt: str) -> Script:
    """What a call meets. A receipt is told only by answers that are whole."""
    answer = behaviour.answer
    taken = as_json({"id": receipt}) if receipt else as_json({"error": "not taken"})
    if not answer:
        return Script(response(200, taken))
    if answer[:3].isdigit():
        return Script(_status(int(answer[:3]), taken, answer[4:]))
    whole = response(200, as_json({"id": receipt or "h-of-nothing", "note": "x" * 40}))
    scripts = {
        "reset": Script(b"", "reset"),
        "closed": Script(b"", "close"),
        "silent": Script(b"", "silent"),
        "cut": Script(whole[:-50], "close"),
        "cut-head": Script(whole[:30], "close"),
        "unreadable": Script(response(200, b"<html>Thank you for your message.</html>")),
        "empty": Script(response(200, b"")),
        "no-receipt": Script(response(200, b'{"status": "queued"}')),
        "odd-receipt": Script(response(200, b'{"id": true}')),
        "garbage": Script(b"\x00\xff not HTTP at all\r\n\r\n", "close"),
        "drip": Script(whole if receipt else response(503, b"{}"), drips=True),
        "huge": Script(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000, "close"),
        "two-lengths": Script(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 13\r\n\r\n{"id": "h-1"}', "close"),
        "early": Script(b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n", "close"),
    }
    return scripts[answer]


async def play(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what the script says, as it says, and end as it says."""
    pieces = [bytes([byte]) for byte in script.answer] if script.drips else [script.answer]
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        if script.drips:
            await asyncio.sleep(DRIP)
    if script.ending == "silent":
        await reader.read()  # until the other side gives up
    if script.ending == "reset":
        reset(writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a machine does whose process is gone."""
    line = writer.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def response(status: int, body: bytes, headers: str = "") -> bytes:
    """A whole HTTP response."""
    return (
        f"HTTP/1.1 {status} As Told\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
        + body
    )


def as_json(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False).encode()


def _status(status: int, taken: bytes, word: str) -> bytes:
    headers = {302: "Location: /elsewhere\r\n", 307: "Location: /elsewhere\r\n"}.get(status, "")
    if status == 429:
        headers = "".join(f"Retry-After: {value}\r\n" for value in RETRY_AFTER[word])
    if status in (204, 304):
        return f"HTTP/1.1 {status} As Told\r\n\r\n".encode()
    return response(status, taken if status in (200, 201) else as_json({"error": f"told to say {status}"}), headers)


def _truth(known: Record | None) -> Script:
    if known is None or not known.filed:
        return Script(response(404, b'{"error": "no such message"}'))
    return Script(response(200, as_json({"id": known.receipt, "to": known.target})))


LIES = {
    "absent": partial(_truth, None),
    "500": partial(Script, response(500, b'{"error": "told to"}')),
    "silent": partial(Script, b"", "silent"),
    "garbage": partial(Script, b"\x00 not HTTP\r\n\r\n", "close"),
    "no-receipt": partial(Script, response(200, b"{}")),
}


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """One request with a Content-Length or without a body; nothing when the other side is done."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    method, address, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
    length = int(headers.get("content-length", 0))
    if not 0 <= length <= LONGEST_BODY:
        return None
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return Request(method, parts.path, query, headers, await reader.readexactly(length))


def _content(body: bytes) -> dict[str, Any]:
    """The body as it came: a JSON object, or whatever it was as text."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {"unreadable": body.decode("utf-8", "replace")[:10_000]}


def _attempt(content: dict[str, Any]) -> int | None:
    metadata = content.get("metadata")
    attempt = metadata.get("attempt") if isinstance(metadata, dict) else None
    return attempt if type(attempt) is int else None
