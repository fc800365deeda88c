"""Where a provider may dial: public addresses only, and the address that was checked is the one dialled.

Loopback and private networks are allowed for a local start (DEBUG=1) and nowhere else. Hosts come from a channel's settings, which
an operator writes; nothing in a plan can name one.
"""

import asyncio
import ipaddress
import socket


class Forbidden(OSError):
    """The name leads to an address that Signoff does not call."""


def check_address(address: str, *, loopback: bool) -> None:
    """Raises Forbidden unless `address` (numeric) may be called."""
    ip = ipaddress.ip_address(address.split("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None) or ip
    if not loopback and (not mapped.is_global or mapped.is_multicast):
        raise Forbidden(f"{address} is not a public address")


async def addresses_of(host: str, port: int, *, loopback: bool) -> list[str]:
    """The numeric addresses of `host`, in the order to be tried. Raises Forbidden when any may not be called, OSError for none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
    for address in addresses:
        check_address(address, loopback=loopback)
    if not addresses:
        raise OSError(f"{host} has no address")
    return addresses
