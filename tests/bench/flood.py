"""`python -m tests.bench.flood URL N`: as many POSTs as bare sockets carry, to learn the provider's ceiling."""

import asyncio
import sys
from urllib.parse import urlsplit

CONNECTIONS = 32


async def main(url: str, n: int) -> None:
    """N small POSTs over kept-open connections, answers read and thrown away."""
    parts = urlsplit(url)
    left = iter(range(n))

    async def sender() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for number in left:
            writer.write(b"POST /send HTTP/1.1\r\nIdempotency-Key: f%d-%d\r\nContent-Length: 2\r\n\r\n{}" % (id(left), number))
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(size)
        writer.close()

    await asyncio.gather(*(sender() for _ in range(CONNECTIONS)))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
