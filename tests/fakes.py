"""Providers that misbehave, as real servers on loopback, told in words what to do for each recipient.

Each counts deliveries by recipient, at the moment it accepts one and before it answers, never by our key: that count is the truth the
ledger is held against.
"""

import asyncio
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Behaviour:
    """What an HTTP provider does with one POST: files it or not, then answers these bytes, or none."""

    accepts: bool
    answer: bytes | None  # none: close without a word
    hangs: bool = False  # keep the connection open and say nothing (more)
    waits: float = 0.0  # seconds before it answers


def _http(status: int, body: bytes, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} Said So\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def accepts(status: int = 200) -> Behaviour:
    return Behaviour(True, _http(status, b'{"id": "RECEIPT"}'))


def accepts_slowly(seconds: float) -> Behaviour:
    return Behaviour(True, _http(200, b'{"id": "RECEIPT"}'), waits=seconds)


def accepts_without_receipt() -> Behaviour:
    return Behaviour(True, _http(200, b"{}"))


def accepts_then_dies() -> Behaviour:
    return Behaviour(True, None)


def dies() -> Behaviour:
    return Behaviour(False, None)


def accepts_then_hangs() -> Behaviour:
    return Behaviour(True, None, hangs=True)


def accepts_and_cuts_its_answer() -> Behaviour:
    return Behaviour(True, b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"id": "REC')


def answers(status: int, body: bytes = b"{}", *, accepted: bool = False, headers: str = "") -> Behaviour:
    return Behaviour(accepted, _http(status, body, headers))


def challenges() -> Behaviour:
    """Create it, and complete it only when the challenge is answered."""
    return Behaviour(False, b"201 CHALLENGE")


def says_garbage(*, accepted: bool = True) -> Behaviour:
    return Behaviour(accepted, b"\x00\xffnot http at all\r\n\r\n")


class Server:
    """A server on its own thread and loop: `with FakeHttp() as provider:`."""

    def __init__(self) -> None:
        self.deliveries: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class FakeHttp(Server):
    """POST / files one message, POST /answer one that had a challenge; GET /look?key=… answers from what was filed, or `finds_nothing`."""

    def __init__(self, *, otherwise: Behaviour | None = None) -> None:
        super().__init__()
        self.otherwise = otherwise or accepts()
        self.behaviours: dict[str, Behaviour] = {}
        self.filed: dict[str, str] = {}  # key:epoch -> receipt, for look-ups
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.said: list[bytes] = []  # the answer to each of `bodies`, as it goes out
        self.finds_nothing = False
        self.operations: dict[str, bytes] = {}  # operation -> what its address answers
        self.challenged: dict[str, tuple[str, str]] = {}  # challenge -> the target and key of what was created
        self.to_answers = answers(200, b'{"ok": true}', accepted=True)  # what an answer meets
        self.answers: Counter[str] = Counter()  # by target
        self.before_completion: Callable[[str, str], None] = lambda target, receipt: None
        self.look_ups = 0
        self.before_answer: Callable[[dict[str, Any]], None] = lambda body: None

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a channel that sends here."""
        base = f"http://127.0.0.1:{self.port}"
        return {
            "url": f"{base}/send",
            "lookup_url": f"{base}/look?key={{key}}&epoch={{epoch}}",
            "operation_url": f"{base}/operation?id={{operation}}",
            "challenge_field": "challenge",
            "challenge_url": f"{base}/answer?to={{challenge}}",
            "timeout": "2",
            "settle_window": "0",
        }

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = head[0].split(" ")
            if path.startswith("/answer"):
                answer = self._answered(json.loads(body))
            else:
                answer = self._found(path) if method == "GET" else self._taken(json.loads(body), headers)
            await asyncio.sleep(answer.waits)
            if answer.answer is not None:
                writer.write(answer.answer)
                await writer.drain()
            if answer.hangs:
                await asyncio.sleep(3600)
            if answer.answer is None or b"Content-Length: 400" in answer.answer or not answer.answer.startswith(b"HTTP"):
                return

    def _taken(self, body: dict[str, Any], headers: dict[str, str]) -> Behaviour:
        target = body["to"]
        behaviour = self.behaviours.get(target, self.otherwise)
        self.calls[target] += 1
        self.bodies.append(body)
        self.headers.append(headers)
        receipt = f"r-{sum(self.deliveries.values()) + 1}"
        if behaviour.accepts:
            self.deliveries[target] += 1
            self.filed[headers["idempotency-key"]] = receipt
        if behaviour.answer is not None and b"RECEIPT" in behaviour.answer:
            behaviour = replace(behaviour, answer=_http(200, json.dumps({"id": receipt}).encode()))
        if behaviour.answer == b"201 CHALLENGE":
            self.challenged[f"c-{target}"] = target, headers["idempotency-key"]
            behaviour = replace(
                behaviour, answer=_http(201, json.dumps({"id": f"m-{target}", "challenge": f"c-{target}"}).encode())
            )
        self.said.append(behaviour.answer or b"")
        self.before_answer(body)
        return behaviour

    def _answered(self, body: dict[str, Any]) -> Behaviour:
        target, key = self.challenged[body["challenge"]]
        self.before_completion(target, f"m-{target}")
        self.answers[target] += 1
        if self.to_answers.accepts:
            self.deliveries[target] += 1
            self.filed[key] = f"m-{target}"
        return self.to_answers

    def _found(self, path: str) -> Behaviour:
        self.look_ups += 1
        asked = parse_qs(urlsplit(path).query)
        if path.startswith("/operation"):
            return answers(200, self.operations.get(asked["id"][0], b'{"status": "running"}'))
        receipt = self.filed.get(f"{asked['key'][0]}:{asked['epoch'][0]}")
        if receipt is None or self.finds_nothing:
            return answers(404, b'{"error": "no such message"}')
        return answers(200, json.dumps({"id": receipt}).encode())


@dataclass(frozen=True)
class MailBehaviour:
    """What a relay does with one recipient. A code stands for "say this there"; `drops` closes the connection there."""

    rcpt: int = 250
    data: int = 354
    dot: int = 250
    drops: str = ""  # rcpt, data, dot
    hangs_after_dot: bool = False
    resets_after_dot: bool = False
    hangs_up_after_no: bool = False


class FakeRelay(Server):
    """An SMTP relay. A message counts as delivered when the final dot was read and the answer would be 250."""

    def __init__(self) -> None:
        super().__init__()
        self.behaviours: dict[str, MailBehaviour] = {}
        self.messages: list[bytes] = []
        self.connections = 0
        self.before_answer: Callable[[str, bytes, bool], None] = lambda to, message, accepted: None

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a channel that sends here."""
        return {"host": "127.0.0.1", "port": str(self.port), "tls": "none", "from": "Ada <ada@acme.example>", "timeout": "1"}

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(code: int, words: str = "as told") -> None:
            writer.write(f"{code} {words}\r\n".encode())

        self.connections += 1
        say(220, "fake relay")
        to, behaviour = "", MailBehaviour()
        while line := (await reader.readline()).decode():
            verb = line[:4].upper().strip()
            if verb == "RCPT":
                to = line.partition("<")[2].partition(">")[0]
                behaviour = self.behaviours.get(to, MailBehaviour())
                self.calls[to] += 1
                if behaviour.drops == "rcpt":
                    return
                say(behaviour.rcpt)
                if behaviour.hangs_up_after_no:
                    return
            elif verb == "DATA":
                if behaviour.drops == "data":
                    return
                say(behaviour.data)
                if behaviour.data == 354:
                    message = await reader.readuntil(b"\r\n.\r\n")
                    if behaviour.dot == 250:
                        self.deliveries[to] += 1
                        self.messages.append(message)
                    self.before_answer(to, message, behaviour.dot == 250)
                    if behaviour.hangs_after_dot:
                        await asyncio.sleep(3600)
                    if behaviour.resets_after_dot:
                        line = struct.pack("ii", 1, 0)  # no lingering: closing is a reset
                        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, line)
                        writer.transport.abort()
                        return
                    if behaviour.drops == "dot":
                        return
                    say(behaviour.dot, f"2.0.0 Ok: queued as Q{len(self.messages)}")
            elif verb == "QUIT":
                say(221)
                return
            else:
                say(250)
            await writer.drain()
