"""What a worker process keeps between tasks: one event loop, two pens, and the providers it has open."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import uvloop
from django.conf import settings

from effects import failpoints, ledger
from effects.channels import open_provider
from effects.ledger import Connection
from effects.models import Channel
from effects.providers import Provider

COLUMNS = ("id", "workspace_id", "slug", "provider", "settings", "secrets")
CHANNEL = f"SELECT {', '.join(COLUMNS)} FROM effects_channel WHERE id = %s"  # noqa: S608


class Workplace:
    """Made once per process, after the fork; `run` drives its loop from an ordinary function."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.worker = ledger.incarnation()
        failpoints.arm(settings.SIGNOFF_FAILPOINTS)
        self._pens: dict[str, Connection] = {}
        self._providers: dict[int, tuple[str, Provider]] = {}

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, on this process's loop."""
        return self.loop.run_until_complete(work)

    async def pen(self, use: str) -> Connection:
        """The kept-open connection for one use (reserving, recording, sweeping); a broken one is replaced."""
        pen = self._pens.get(use)
        if pen is None or pen.closed or pen.broken:
            pen = self._pens[use] = await ledger.connect(use)
        return pen

    async def channel(self, id: int) -> Channel:
        """The channel as the database has it now."""
        cursor = await (await self.pen("reading")).execute(CHANNEL, (id,))
        row = await cursor.fetchone()
        if row is None:
            raise Channel.DoesNotExist(id)
        return Channel(**dict(zip(COLUMNS, row, strict=True)))

    async def provider(self, channel: Channel) -> Provider:
        """The channel's provider, opened anew when its settings or secrets changed."""
        made_of = f"{channel.provider} {channel.settings} {channel.secrets}"
        known = self._providers.get(channel.pk)
        if known and known[0] == made_of:
            return known[1]
        if known:
            await known[1].close()
        provider = open_provider(channel)
        self._providers[channel.pk] = (made_of, provider)
        return provider

    async def close(self) -> None:
        """Close every provider and pen."""
        for _, provider in self._providers.values():
            await provider.close()
        for pen in self._pens.values():
            await pen.close()
        self._providers.clear()
        self._pens.clear()


_workplace: Workplace | None = None


def here() -> Workplace:
    """This process's workplace."""
    global _workplace
    if _workplace is None:
        _workplace = Workplace()
    return _workplace
