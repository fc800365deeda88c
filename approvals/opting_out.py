"""Opt-outs: targets that want nothing. What was not sent to them yet is withheld, also in plans that are going out.

Workers read opt-outs with the rows they send (`approvals/sql/outlook.sql`), so one takes hold within a second, as a stop does.
"""

import unicodedata
from collections.abc import Iterable
from itertools import batched
from pathlib import Path

from django.db import connection, transaction
from django.db.models import Q, QuerySet
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
from effects.statements import read_statements

AT_A_TIME = 2_000  # opt-outs in one statement
NAMED = 100  # targets that one entry in the record names

SQL = read_statements(Path(__file__).parent / "sql" / "opting_out.sql")


@transaction.atomic(durable=True)
def opt_out(
    workspace: Workspace, targets: Iterable[str], *, by: Human | Actor, reason: str, channel: Channel | None = None
) -> int:
    """Send nothing more to these targets, through `channel` or through any. Returns how many had not opted out before.

    Raises Refused, and keeps nothing, when one of them is no target; the message says in which line. Blank lines are passed over.
    """
    actor = _allowed(by, workspace.pk)
    _needs(reason, "Say why, or how they asked: the reason is shown wherever a row is left out for it.")
    if channel and channel.workspace_id != workspace.pk:
        raise Refused("That channel is another workspace's.")
    typed = ((line, target) for line, target in enumerate(targets, 1) if target.strip())
    resolved = {_resolved(target, line, channel): None for line, target in typed}
    if not resolved:
        raise Refused("Name at least one target.")
    _wait(workspace.pk, "writing")
    added: list[str] = []
    for some in batched(resolved, AT_A_TIME):
        wanted = {form: forms[0] for forms in some for form in forms}
        held = set(in_force(workspace.pk).filter(channel=channel, target__in=wanted).values_list("target", flat=True))
        new = [form for form in wanted if form not in held]
        OptOut.objects.bulk_create(
            OptOut(workspace=workspace, channel=channel, target=form, reason=reason, by=actor.name) for form in new
        )
        added += dict.fromkeys(wanted[form] for form in new)
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
    _wait(opt_out.workspace_id, "writing", "lifting")
    if in_force(opt_out.workspace_id).filter(pk=opt_out.pk).update(lifted_at=Now(), lifted_by=actor.name) != 1:
        raise LostRace("This opt-out was lifted already.", opt_out)
    chain.append(
        "opt-out lifted", workspace_id=opt_out.workspace_id, by=actor, on=("opt-out", opt_out.pk, opt_out.target), reason=reason
    )


def in_force(workspace_id: int) -> QuerySet[OptOut]:
    """The opt-outs of a workspace that nobody lifted."""
    return OptOut.objects.filter(workspace_id=workspace_id, lifted_at=None)


def held(workspace: Workspace, target: str, *, channel: Channel | None = None) -> list[OptOut]:
    """The opt-outs in force for one target, through `channel` or through any; more than one where it may be resolved in several ways."""
    same = Q(target__in=_resolved(target, 1, channel)) | Q(target__iexact=target.strip())
    return list(in_force(workspace.pk).filter(same, channel=channel))


def _resolved(typed: str, line: int, channel: Channel | None) -> tuple[str, ...]:
    """The target as rows of this channel have it, or of any: then in each way, so that a channel that is added later finds its own.

    Refused is what could not be the target of any row: it would withhold nothing, and look as if it did.
    """
    text, kind = typed.strip(), str(setting(channel, "target_kind")) if channel else ""
    if any(unicodedata.category(character) == "Cf" for character in text):
        raise Refused(f"Line {line} holds a character that cannot be seen; type the target anew. Nothing was kept.")
    try:
        if text.lower().startswith("mailto:"):
            raise UnusableKey(f"{text!r} must be the address alone, without mailto:")
        if "@" in text and kind != "opaque":  # whoever types an address means one mailbox
            normalize_target(text, "email")
        return tuple(dict.fromkeys(normalize_target(text, one) for one in ([kind] if kind else ("auto", "opaque"))))
    except UnusableKey as error:
        raise Refused(f"Line {line}: {error}. Nothing was kept.") from None


def _wait(workspace_id: int, *locks: str) -> None:
    with connection.cursor() as cursor:
        for lock in locks:
            cursor.execute(SQL[lock], {"workspace_id": workspace_id})


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
