"""What a worker process keeps between tasks: one event loop on a thread of its own, spare pens, and the providers it has open.

Tasks run on threads and hand their work to the loop, so a channel that answers slowly costs a waiting thread and nothing else.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import uvloop
from django.conf import settings
from psycopg.pq import TransactionStatus

from effects import failpoints
from effects.channels import open_provider
from effects.connections import Connection, connect, incarnation
from effects.models import Channel
from effects.providers import Provider

COLUMNS = ("id", "workspace_id", "slug", "provider", "settings", "secrets")
CHANNEL = f"SELECT {', '.join(COLUMNS)} FROM effects_channel WHERE id = %s"  # noqa: S608
SPARE = 8  # pens kept open while nobody writes

Pens = Callable[[str], Awaitable[Connection]]  # the connection for one use of one piece of work; a broken one is replaced


class Workplace:
    """One per process; `run` drives its loop from an ordinary function, on whatever thread that is."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.worker = incarnation()
        failpoints.arm(settings.SIGNOFF_FAILPOINTS)
        self._thread = threading.Thread(target=self.loop.run_forever, name="sending", daemon=True)
        self._thread.start()
        self._spare: list[Connection] = []
        self._providers: dict[int, tuple[str, Provider]] = {}
        self._busy: set[int] = set()

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, on this process's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    @contextlib.asynccontextmanager
    async def pens(self) -> AsyncIterator[Pens]:
        """Connections for one piece of work, one for each use (reserving, recording, …), given back at its end."""
        held: dict[str, Connection] = {}

        async def pen(use: str) -> Connection:
            mine = held.get(use)
            if mine is None or mine.closed or mine.broken:
                mine = held[use] = self._spare.pop() if self._spare else await connect()
            return mine

        try:
            yield pen
        finally:
            for connection in held.values():
                if len(self._spare) < SPARE and connection.info.transaction_status == TransactionStatus.IDLE:
                    self._spare.append(connection)
                else:
                    await connection.close()

    @contextlib.contextmanager
    def turn_at(self, channel_id: int, *, most: int) -> Iterator[bool]:
        """False when this process serves the channel already, or `most` others: a killed one leaves a window of each, and no more."""
        free = channel_id not in self._busy and len(self._busy) < most
        if free:
            self._busy.add(channel_id)
        try:
            yield free
        finally:
            if free:
                self._busy.discard(channel_id)

    async def channel(self, pen: Connection, id: int) -> Channel:
        """The channel as the database has it now."""
        row = await (await pen.execute(CHANNEL, (id,))).fetchone()
        if row is None:
            raise Channel.DoesNotExist(id)
        return Channel(**dict(zip(COLUMNS, row, strict=True)))

    async def provider(self, channel: Channel) -> Provider:
        """The channel's provider, opened anew when its settings or secrets changed."""
        made_of = f"{channel.provider} {channel.settings} {channel.secrets}"
        known = self._providers.get(channel.pk)
        if known and known[0] == made_of:
            return known[1]
        provider = open_provider(channel)
        self._providers[channel.pk] = (made_of, provider)
        if known:
            await known[1].close()
        return provider

    def close(self) -> None:
        """Close every provider and pen, and end the loop."""
        self.run(self.let_go())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def let_go(self) -> None:
        """Close every provider and pen that nobody uses."""
        for _, provider in self._providers.values():
            await provider.close()
        for connection in self._spare:
            await connection.close()
        self._providers.clear()
        self._spare.clear()


_workplace: Workplace | None = None
_opening = threading.Lock()


def here() -> Workplace:
    """This process's workplace."""
    global _workplace
    with _opening:
        if _workplace is None:
            _workplace = Workplace()
        return _workplace
