"""A person's hand on channels, workspaces and everything: pause, and go on. Each with a reason, each on the record.

A pause holds new calls and nothing else: within a second none starts, and those under way end as they end.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.models import Workspace
from accounts.roles import Act
from audit import chain
from audit.chain import Actor
from effects.actors import Human
from effects.models import Channel, Pause
from effects.pausing import EVERYTHING, in_force, of_channel, of_workspace

type Named = tuple[str, int, str]  # kind, number and name, as the record names what was acted on

LONGEST = 7 * 24 * 60  # minutes; longer than that is "until somebody lets it go on"


@transaction.atomic(durable=True)
def pause_channel(channel: Channel, *, by: Human, reason: str, minutes: int | None = None) -> Pause:
    """Start no call through this channel, for so many minutes or until somebody lets it go on. Raises LostRace when a person paused it."""
    return _pause(of_channel(channel.pk), channel.workspace_id, _named(channel), by=by, reason=reason, minutes=minutes)


@transaction.atomic(durable=True)
def resume_channel(channel: Channel, *, by: Human, reason: str) -> None:
    """End every pause of this channel, whoever began it. Raises LostRace when there is none."""
    _resume(of_channel(channel.pk), channel.workspace_id, _named(channel), by=by, reason=reason)


@transaction.atomic(durable=True)
def pause_workspace(workspace: Workspace, *, by: Human, reason: str, minutes: int | None = None) -> Pause:
    """Start no call of this workspace."""
    return _pause(of_workspace(workspace.pk), workspace.pk, _named(workspace), by=by, reason=reason, minutes=minutes)


@transaction.atomic(durable=True)
def resume_workspace(workspace: Workspace, *, by: Human, reason: str) -> None:
    """End the pause of the workspace; those of its plans and channels stay."""
    _resume(of_workspace(workspace.pk), workspace.pk, _named(workspace), by=by, reason=reason)


@transaction.atomic(durable=True)
def pause_everything(*, by: Actor, reason: str, minutes: int | None = None) -> Pause:
    """Start no call of anybody: an act of whoever runs Signoff, told in the record of every workspace."""
    _needs(reason)
    pause = _start(EVERYTHING, None, by=by, reason=reason, minutes=minutes)
    for workspace in Workspace.objects.all():
        _record("everything paused", workspace.pk, by, on=_named(workspace), reason=reason, pause=pause)
    return pause


@transaction.atomic(durable=True)
def resume_everything(*, by: Actor, reason: str) -> None:
    """End the pause of everything; every other pause stays."""
    _needs(reason)
    _lift(EVERYTHING, by=by)
    for workspace in Workspace.objects.all():
        _record("everything resumed", workspace.pk, by, on=_named(workspace), reason=reason)


def _named(thing: Channel | Workspace) -> Named:
    return ("channel" if isinstance(thing, Channel) else "workspace", thing.pk, thing.slug)


def _pause(subject: str, workspace_id: int, on: Named, *, by: Human, reason: str, minutes: int | None) -> Pause:
    _may(by, workspace_id)
    _needs(reason)
    pause = _start(subject, workspace_id, by=by.actor, reason=reason, minutes=minutes)
    _record(f"{on[0]} paused", workspace_id, by.actor, on=on, reason=reason, pause=pause)
    return pause


def _resume(subject: str, workspace_id: int, on: Named, *, by: Human, reason: str) -> None:
    _may(by, workspace_id)
    _needs(reason)
    _lift(subject, by=by.actor)
    _record(f"{on[0]} resumed", workspace_id, by.actor, on=on, reason=reason)


def _start(subject: str, workspace_id: int | None, *, by: Actor, reason: str, minutes: int | None) -> Pause:
    if minutes is not None and not 1 <= minutes <= LONGEST:
        raise Refused(f"Minutes must be between 1 and {LONGEST}; leave them out for a pause without an end.")
    if (held := in_force([subject]).filter(until=None).first()) and minutes is None:
        raise LostRace(f"It is paused already, by {held.started_by}.", held)
    pause = Pause.objects.create(
        workspace_id=workspace_id,
        subject=subject,
        reason=reason,
        started_by=by.name,
        until=Now() + timedelta(minutes=minutes) if minutes else None,
    )
    return Pause.objects.get(pk=pause.pk)


def _lift(subject: str, *, by: Actor) -> None:
    if in_force([subject]).update(lifted_at=Now(), lifted_by=by.name) == 0:
        raise LostRace("It is not paused (any more).", subject)


def _may(by: Human, workspace_id: int) -> None:
    if by.workspace_id != workspace_id or not by.may(Act.HALT):
        raise Refused(f"Your role may not {Act.HALT.value}.")


def _needs(reason: str) -> None:
    if not reason.strip():
        raise Refused("Say why: the reason stands in the record.")


def _record(act: str, workspace_id: int, by: Actor, *, on: Named, reason: str, pause: Pause | None = None) -> None:
    until = {"until": pause.until.isoformat() if pause.until else "somebody lets it go on"} if pause else None
    chain.append(act, workspace_id=workspace_id, by=by, on=on, reason=reason, after=until)
