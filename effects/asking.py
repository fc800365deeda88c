"""Ask a provider now, at a person's word, whether an effect exists. A hit settles an unknown row; any answer is noted as evidence."""

import asyncio

from django.db import transaction

from accounts.errors import LostRace, Refused
from accounts.roles import Act
from audit import chain
from effects import rulings
from effects.actors import Human
from effects.channels import open_provider
from effects.looking import look_up
from effects.models import Channel, Effect, LookUp
from effects.providers.base import Answer, Provider, Sighting
from effects.states import State
from effects.verdicts import Reply, ReplyKind


def can_ask(channel: Channel) -> bool:
    """True when this channel's provider can be asked whether an effect exists."""
    return open_provider(channel).can_look_up()


def ask_now(effect: Effect, *, by: Human) -> LookUp:
    """One look-up; an unknown row becomes done when it is found, a pending one is left to the worker or the sweeper.

    Raises LostRace when the row is not open, Refused when nobody can be asked.
    """
    if effect.workspace_id != by.workspace_id or not by.may(Act.RESOLVE):
        raise Refused(f"Your role may not {Act.RESOLVE.value}.")
    if effect.state not in (State.PENDING, State.UNKNOWN):
        raise LostRace(f"This effect is {effect.state}; there is nothing to ask.", effect)
    provider = open_provider(effect.channel)
    if not provider.can_look_up():
        raise Refused("This channel's provider cannot be asked: it has no look-up address.")
    sighting = asyncio.run(_ask(provider, effect, _reply_of(effect)))
    with transaction.atomic(durable=True):
        noted = LookUp.objects.create(
            effect=effect, by=by.actor.name, answer=sighting.answer.value, receipt=sighting.receipt, raw=sighting.raw
        )
        chain.append(
            "provider asked",
            workspace_id=effect.workspace_id,
            by=by.actor,
            on=("effect", effect.pk, effect.target),
            after={"answer": sighting.answer.value, "receipt": sighting.receipt},
        )
        if sighting.answer is Answer.FOUND:
            rulings.prove(effect, found=noted, by=by)  # if somebody was first, the answer stays as evidence
    return noted


async def _ask(provider: Provider, effect: Effect, reply: Reply | None) -> Sighting:
    try:
        return await look_up(provider, effect.key, effect.epoch, reply)
    finally:
        await provider.close()


def _reply_of(effect: Effect) -> Reply | None:
    kept = effect.reply
    return Reply(ReplyKind(kept.kind), bytes(kept.raw), kept.note) if kept else None
