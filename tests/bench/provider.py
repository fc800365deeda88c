"""The provider of the benchmark: answers each POST after a set time, and counts hits, distinct keys, first and last moment.

`python -m tests.bench.provider PORT`. Written on bare asyncio, so that it is not what is being measured; its own ceiling is printed.
"""

import asyncio
import json
import sys
import time

PADDING = "x" * 200


class State:
    """What was counted since the last reset."""

    def __init__(self) -> None:
        self.reset(0.0)

    def reset(self, delay: float) -> None:
        self.delay, self.hits, self.first, self.last = delay, 0, 0.0, 0.0
        self.keys: set[bytes] = set()

    def hit(self, key: bytes) -> bytes:
        self.last = time.time()
        self.first = self.first or self.last
        self.hits += 1
        self.keys.add(key)
        return b'{"id": "m-%d", "status": "accepted", "note": "%s"}' % (self.hits, PADDING.encode())

    def told(self) -> bytes:
        figures = {"hits": self.hits, "distinct": len(self.keys), "first": self.first, "last": self.last}
        return json.dumps(figures).encode()


class Protocol(asyncio.Protocol):
    """HTTP/1.1 with kept-open connections and Content-Length, and no more."""

    def __init__(self, state: State) -> None:
        self.state, self.buffer = state, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            size = int(_header(head, b"content-length") or 0)
            if len(self.buffer) < end + 4 + size:
                return
            self.buffer = self.buffer[end + 4 + size :]
            self.handle(head)

    def handle(self, head: bytes) -> None:
        if head.startswith(b"GET /stats"):
            self.answer(self.state.told())
        elif head.startswith(b"GET /reset"):
            self.state.reset(float(head.split(b" ")[1].rpartition(b"=")[2]))
            self.answer(b"{}")
        elif self.state.delay:
            body = self.state.hit(_header(head, b"idempotency-key"))
            asyncio.get_running_loop().call_later(self.state.delay, self.answer, body)
        else:
            self.answer(self.state.hit(_header(head, b"idempotency-key")))

    def answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)


def _header(head: bytes, name: bytes) -> bytes:
    at = head.lower().find(b"\r\n" + name + b":")
    return head[at + len(name) + 3 :].split(b"\r\n", 1)[0].strip() if at >= 0 else b""


async def serve(port: int) -> None:
    """Until killed."""
    state = State()
    server = await asyncio.get_running_loop().create_server(lambda: Protocol(state), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
