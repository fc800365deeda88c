"""Opt-outs: targets that want nothing. What was not sent to them yet is withheld, also in plans that are going out.

Workers read opt-outs with the rows they send (`approvals/sql/outlook.sql`), so one takes hold within a second, as a stop does.
"""

from collections.abc import Iterable, Iterator
from itertools import batched

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.models import Workspace
from accounts.roles import Act
from approvals.models import OptOut
from audit import chain
from audit.chain import Actor
from effects.actors import Human
from effects.channels import setting
from effects.keys import UnusableKey, normalize_target
from effects.models import Channel

AT_A_TIME = 2_000  # opt-outs in one statement
NAMED = 100  # targets that one entry in the record names


@transaction.atomic(durable=True)
def opt_out(
    workspace: Workspace, targets: Iterable[str], *, by: Human | Actor, reason: str, channel: Channel | None = None
) -> int:
    """Send nothing more to these targets, through `channel` or through any. Returns how many had not opted out before.

    Raises Refused, and keeps nothing, when one of them is no target; the message says which.
    """
    actor = _allowed(by, workspace.pk)
    _needs(reason, "Say why, or how they asked: the reason is shown wherever a row is left out for it.")
    kinds = _kinds(workspace, channel)
    typed = ((line, target) for line, target in enumerate(targets, 1) if target.strip())
    resolved = list(dict.fromkeys(form for line, target in typed for form in _forms(target, kinds, line)))
    if not resolved:
        raise Refused("Name at least one target.")
    added: list[str] = []
    for some in batched(resolved, AT_A_TIME):
        held = set(in_force(workspace.pk).filter(channel=channel, target__in=some).values_list("target", flat=True))
        new = [target for target in some if target not in held]
        OptOut.objects.bulk_create(
            [OptOut(workspace=workspace, channel=channel, target=target, reason=reason, by=actor.name) for target in new],
            ignore_conflicts=True,  # somebody else was first with the same
        )
        added += new
    if added:
        chain.append(
            "targets opted out", workspace_id=workspace.pk, by=actor, on=("workspace", workspace.pk, workspace.slug), reason=reason,
            after={"count": len(added), "targets": added[:NAMED], "channel": channel.slug if channel else "every channel"},
        )  # fmt: skip
    return len(added)


@transaction.atomic(durable=True)
def lift(opt_out: OptOut, *, by: Human | Actor, reason: str) -> None:
    """Let plans that are proposed from now on reach this target again. Raises LostRace when it was lifted already."""
    actor = _allowed(by, opt_out.workspace_id)
    _needs(reason, "Say what changed: letting somebody be written to again stands in the record.")
    if in_force(opt_out.workspace_id).filter(pk=opt_out.pk).update(lifted_at=Now(), lifted_by=actor.name) != 1:
        raise LostRace("This opt-out was lifted already.", opt_out)
    chain.append(
        "opt-out lifted", workspace_id=opt_out.workspace_id, by=actor, on=("opt-out", opt_out.pk, opt_out.target), reason=reason
    )


def in_force(workspace_id: int) -> QuerySet[OptOut]:
    """The opt-outs of a workspace that nobody lifted."""
    return OptOut.objects.filter(workspace_id=workspace_id, lifted_at=None)


def held(workspace: Workspace, target: str, *, channel: Channel | None = None) -> list[OptOut]:
    """The opt-outs in force for one target, through `channel` or through any; more than one where channels resolve it differently."""
    forms = list(_forms(target, _kinds(workspace, channel), 1))
    return list(in_force(workspace.pk).filter(channel=channel, target__in=forms))


def _kinds(workspace: Workspace, channel: Channel | None) -> list[str]:
    """How the targets of rows are resolved, in the channels that this concerns."""
    channels = [channel] if channel else Channel.objects.filter(workspace=workspace)
    return sorted({str(setting(one, "target_kind")) for one in channels} or {"auto"})


def _forms(typed: str, kinds: list[str], line: int) -> Iterator[str]:
    """A target as each of these channels resolves it, most often in one way. Refused when it is a target for none of them."""
    trouble: UnusableKey | None = None
    usable = False
    for kind in kinds:
        try:
            yield normalize_target(typed, kind)
            usable = True
        except UnusableKey as error:
            trouble = error
    if trouble and not usable:
        raise Refused(f"Line {line}: {trouble}. Nothing was kept.")


def _allowed(by: Human | Actor, workspace_id: int) -> Actor:
    """Who the record names: a person whose role may, or whoever runs Signoff, by a command."""
    if isinstance(by, Human):
        if by.workspace_id != workspace_id or not by.may(Act.OPT_OUT):
            raise Refused(f"Your role may not {Act.OPT_OUT.value}.")
        return by.actor
    if by.kind != "command":
        raise Refused("Opt-outs are kept by people, and by whoever runs Signoff.")
    return by


def _needs(reason: str, advice: str) -> None:
    if not reason.strip():
        raise Refused(advice)
