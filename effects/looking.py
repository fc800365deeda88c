"""One question to a provider, answered whatever happens: a look-up never raises and never holds anybody up."""

import asyncio

from effects.providers.base import Answer, Provider, Sighting
from effects.verdicts import Reply, storable

SECONDS = 10.0  # a look-up that takes longer says nothing this time


async def look_up(provider: Provider, key: str, epoch: int, reply: Reply | None = None) -> Sighting:
    """What the provider says of this effect. A fault of theirs, or of ours, is inconclusive; so is a receipt we cannot keep as it came."""
    try:
        async with asyncio.timeout(SECONDS):
            sighting = await provider.look_up(key, epoch, reply)
    except Exception as error:
        return Sighting(Answer.INCONCLUSIVE, raw=storable(f"{type(error).__name__}: {error}").encode())
    if sighting.receipt != storable(sighting.receipt):
        return Sighting(Answer.INCONCLUSIVE, raw=sighting.raw)
    return sighting
