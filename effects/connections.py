"""Connections for the machine's pen: how they are opened, what they lose, and how to insist on writing when one is lost."""

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from django.db import connections

# Rows are looked up by key or id, whatever the statistics say: a plan made while the ledger was small must not read all of it later.
BY_KEY_ONLY = (
    "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan -c jit=off"
)
STANDSTILL = 15.0  # seconds that one transaction may take; a worker that stands still in the middle holds nobody up for longer
Connection = psycopg.AsyncConnection[Any]
PATIENCE = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between attempts to write down what came back, when the database is away
GONE = (psycopg.OperationalError, psycopg.errors.TransactionTimeout)  # a connection is lost, in whatever way


def incarnation() -> str:
    """This process as the ledger names it. A restarted worker on the same host is another worker."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


async def connect() -> Connection:
    """A connection for the machine's pen: autocommit, durable commits, plans by key only."""
    parameters = connections["default"].get_connection_params()
    wanted = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}
    pen = await psycopg.AsyncConnection.connect(
        **wanted, autocommit=True, application_name="signoff pen", prepare_threshold=1, connect_timeout=10,
        keepalives_idle=10, keepalives_interval=5, keepalives_count=3, options=f"-c synchronous_commit=on {BY_KEY_ONLY}",
    )  # fmt: skip
    if pen.info.server_version >= 170000:  # while a pipeline is open, no idle time-out counts
        await pen.execute(f"SET transaction_timeout = '{STANDSTILL:g}s'")
    return pen


async def insist(pen: Callable[[], Awaitable[Connection]], write: Callable[[Connection], Awaitable[None]]) -> None:
    """Write down what came back; again over a new connection when the database went away, since saying it twice changes nothing."""
    for patience in (*PATIENCE, None):
        try:
            return await write(await pen())
        except GONE:
            if patience is None:
                raise
            await asyncio.sleep(patience)
