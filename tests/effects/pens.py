"""The machine's pen in tests: a workplace with its loop and connections, and rows to claim."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from django.db import connections

from effects import ledger
from effects.content import Content
from effects.keys import effect_key, scope_of
from effects.ledger import Claim, Origin, Won
from effects.models import Channel, Effect
from effects.sending import Limits, Sending, Source
from effects.workplace import Workplace


@pytest.fixture
def workplace() -> Iterator[Workplace]:
    """A worker process's belongings, closed afterwards."""
    place = Workplace()
    yield place
    place.close()


def a_claim(target: str = "customer1@example.com", *, epoch: int = 0, text: str = "Your order has left our house.") -> Claim:
    """A finished letter that wants to be sent."""
    content = Content(target, "Good news", text)
    return Claim(effect_key("spring-sale", "send_email", target, None, scope_of("acme")), epoch, content, content.digest())


def claims_to(*names: str) -> list[Claim]:
    return [a_claim(f"{name}@example.com") for name in names]


def origin_of(channel: Channel, **fields: Any) -> Origin:
    return Origin(channel.workspace_id, channel.pk, "send_email", "spring-sale", scope_of("acme"), **fields)


def reserve(place: Workplace, channel: Channel, claims: Sequence[Claim], *, deadline: float = 60) -> list[Won]:
    """Reserve on the pen of this workplace; returns what was won."""

    async def work() -> list[Won]:
        async with place.pens() as pen:
            return await ledger.reserve(
                await pen("reserving"), claims, of=origin_of(channel), worker=place.worker, deadline=deadline
            )

    return place.run(work())


def rows(claims: Sequence[Claim]) -> Source:
    """A source that offers these claims in order."""
    left = list(claims)

    async def source(most: int) -> list[Claim]:
        taken = left[:most]
        del left[:most]
        return taken

    return source


def send(
    place: Workplace,
    channel: Channel,
    claims: Sequence[Claim] | Source,
    *,
    window: int = 8,
    turn: float = 5,
    deadline: float = 60,
) -> int:
    """Send these claims over this channel, as a worker does; returns how many were reserved."""
    source = rows(claims) if isinstance(claims, Sequence) else claims

    async def work() -> int:
        async with place.pens() as pen:
            return await Sending(
                source=source,
                provider=await place.provider(channel),
                origin=origin_of(channel),
                limits=Limits(window=window, max_attempts=3, deadline=deadline, turn=turn),
                pen=pen,
                worker=place.worker,
            ).run()

    return place.run(work())


def outside(query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What another process would see: the rows of a query on a connection of its own."""
    parameters = connections["default"].get_connection_params()
    address = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}
    with psycopg.connect(**address) as connection:
        return connection.execute(query, values).fetchall()


def state_of(target: str) -> str:
    """The state of the newest attempt at this target."""
    return Effect.objects.filter(target=target).latest("epoch", "attempt").state
