"""Where a provider may dial: public addresses only, and the address that was checked is the one dialled.

Loopback and private networks are allowed for a local start (DEBUG=1) and nowhere else. Hosts come from a channel's settings, which
an operator writes; nothing in a plan can name one.
"""

import asyncio
import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver


class Forbidden(OSError):
    """The name leads to an address that Signoff does not call."""


def check_address(address: str, *, loopback: bool) -> None:
    """Raises Forbidden unless `address` (numeric) may be called."""
    ip = ipaddress.ip_address(address.split("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None) or ip
    if not loopback and (not mapped.is_global or mapped.is_multicast):
        raise Forbidden(f"{address} is not a public address")


async def resolve(host: str, port: int, *, loopback: bool) -> str:
    """One numeric address of `host` that may be called. Raises OSError when there is none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, address in found:
        check_address(str(address[0]), loopback=loopback)
    return str(found[0][4][0])


class CheckedResolver(AbstractResolver):
    """aiohttp's resolver, refusing a name of which any address is not public."""

    def __init__(self, *, loopback: bool) -> None:
        self._inner = ThreadedResolver()
        self._loopback = loopback

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        for entry in found:
            check_address(entry["host"], loopback=self._loopback)
        return found

    async def close(self) -> None:
        await self._inner.close()
