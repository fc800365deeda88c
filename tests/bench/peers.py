"""The peers: plain Celery with one task a message, a bare aiohttp loop, and DBOS with one step a message.

Each sends the same bodies to the same provider and keeps no ledger of effects. `python -m tests.bench.peers bare URL N WINDOW` and
`… dbos URL N WINDOW DATABASE` run one process; Celery's worker loads the module as `-A tests.bench.peers`.
"""

import asyncio
import http.client
import json
import os
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

from celery import Celery

PAYLOAD = {"subject": "Good news", "text": "Dear you,\n" + "x" * 400, "html": "", "payload": None, "amount_minor": None}
app = Celery("plain", broker=os.environ.get("BENCH_BROKER", "redis://"), set_as_current=False)
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=4, worker_enable_remote_control=False)
_kept = threading.local()


def request_of(n: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of message n."""
    key = f"k{n:08d}"
    body = {"to": f"customer{n}@example.com", "metadata": {"key": key, "epoch": 0, "attempt": 1}} | PAYLOAD
    return json.dumps(body).encode(), {"Idempotency-Key": key, "Content-Type": "application/json"}


@app.task
def send_one(url: str, n: int) -> None:
    """One message over this thread's kept-open connection: the quickest client for threads (see the design papers)."""
    parts = urlsplit(url)
    if not hasattr(_kept, "connection"):
        _kept.connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    body, headers = request_of(n)
    _kept.connection.request("POST", parts.path, body, headers)
    json.loads(_kept.connection.getresponse().read())["id"]


async def post_all(url: str, numbers: range, window: int) -> None:
    """A bare loop: `window` senders over one aiohttp session, nothing written down."""
    import aiohttp

    left = iter(numbers)
    connector = aiohttp.TCPConnector(limit=window)

    async def sender(session: aiohttp.ClientSession) -> None:
        for n in left:
            body, headers = request_of(n)
            async with session.post(url, data=body, headers=headers) as response:
                json.loads(await response.read())["id"]

    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(sender(session) for _ in range(window)))


def run_dbos(url: str, numbers: range, window: int, database: str) -> None:
    """One workflow, one recorded step a message, `window` steps at once: the quickest form of DBOS found."""
    import aiohttp
    from dbos import DBOS

    DBOS(config={"name": "bench", "system_database_url": database, "run_admin_server": False, "log_level": "ERROR"})

    @DBOS.step()
    async def step(n: int) -> str:
        body, headers = request_of(n)
        async with sessions[0].post(url, data=body, headers=headers) as response:
            return str(json.loads(await response.read())["id"])

    @DBOS.workflow()
    async def campaign(first: int, last: int) -> int:
        for lo in range(first, last, window):
            await asyncio.gather(*(step(n) for n in range(lo, min(last, lo + window))))
        return last - first

    sessions: list[Any] = []

    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=window)) as session:
            sessions.append(session)
            await campaign(numbers.start, numbers.stop)

    DBOS.launch()
    try:
        asyncio.run(main())
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    kind, address, start, stop, in_flight = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    if kind == "bare":
        asyncio.run(post_all(address, range(start, stop), in_flight))
    else:
        run_dbos(address, range(start, stop), in_flight, sys.argv[6])
