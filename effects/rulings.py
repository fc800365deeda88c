"""The human's pen: what a named person may write to the ledger. Resolve an unknown, revoke, open an epoch; each with a reason.

Every ruling is one conditional write that names the state it leaves (the one that was on screen) and one entry in the record, in one
transaction. No worker can reach this module: the import contracts say so.
"""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.roles import Act
from audit import chain
from effects.actors import Human
from effects.models import Effect, Epoch, LookUp
from effects.states import State, ways_out

RESOLUTIONS = ways_out(State.UNKNOWN)  # done, failed, stranded, revoked: arrows f to i


@transaction.atomic(durable=True)
def resolve(
    effect: Effect, *, to: State, by: Human, reason: str, evidence: str, seen: State | str, again: bool = False
) -> Effect:
    """Arrows f, g, h, i: say what became of an unknown effect. Returns the row as it stands now.

    `evidence` is needed to call it done (the receipt, or where it was seen); `again` asks for another attempt and goes with
    `failed` only: the person takes the risk that it did arrive. Raises LostRace when the row is not as `seen`.
    """
    to = State(to)
    _needs(reason, "Say why: the reason stands in the record.")
    _may(by, Act.RESOLVE)
    if to not in RESOLUTIONS:
        raise Refused(f"An unknown effect cannot become {to}.")
    if to is State.DONE:
        _needs(evidence, "Name the evidence that it arrived: a receipt, or where you saw it.")
    if again and to is not State.FAILED:
        raise Refused("Only what did not happen can be sent again.")
    return _rule(
        effect, seen=seen, must_be=State.UNKNOWN, by=by, reason=reason, act=f"effect resolved as {to}",
        state=to, evidence=evidence, receipt=evidence if to is State.DONE else "", retry_at=Now() if again else None,
    )  # fmt: skip


def prove(effect: Effect, *, found: LookUp, by: Human) -> bool:
    """Arrow f by a look-up that a person asked for, in their transaction: their ruling, with the answer as its evidence.

    False when the row is not unknown (any more); a pending row is left to the machine.
    """
    moved = Effect.objects.filter(pk=effect.pk, workspace_id=by.workspace_id, state=State.UNKNOWN).update(
        state=State.DONE, receipt=found.receipt, reason="found by look-up", evidence=f"look-up {found.pk}: {found.receipt}",
        settled_by=by.actor.name, settled_at=Now(), ruled=True, look_up_at=None,
    )  # fmt: skip
    return moved == 1


@transaction.atomic(durable=True)
def revoke(effect: Effect, *, by: Human, reason: str, seen: State | str) -> Effect:
    """Arrows i and j: take back an unknown or stranded effect; its key is free afterwards."""
    _needs(reason, "Say why: the reason stands in the record.")
    _may(by, Act.RESOLVE)
    if State(seen) not in (State.UNKNOWN, State.STRANDED):
        raise Refused(f"An effect that is {seen} cannot be revoked.")
    return _rule(effect, seen=seen, must_be=State(seen), by=by, reason=reason, act="effect revoked", state=State.REVOKED)


@transaction.atomic(durable=True)
def open_epoch(effect: Effect, *, by: Human, reason: str, seen_epoch: int) -> Epoch:
    """Supersede a done effect on purpose: the same key may have one more effect, in the next epoch.

    Nothing is sent by this; a plan proposed from now on carries the new epoch.
    """
    _needs(reason, "Say why this is to be done once more: the reason stands in the record.")
    _may(by, Act.BUMP)
    current = _locked(effect, by)
    if current.state != State.DONE or current.superseded_by_id or current.epoch != seen_epoch:
        raise LostRace(_superseded(current), current)
    try:
        epoch = Epoch.objects.create(
            workspace_id=current.workspace_id,
            key=current.key,
            epoch=current.epoch + 1,
            supersedes=current,
            opened_by=by.user,
            reason=reason,
        )
    except IntegrityError:
        raise LostRace("Somebody opened this epoch first.", current) from None
    if Effect.objects.filter(pk=current.pk, state=State.DONE, superseded_by=None).update(superseded_by=epoch) != 1:
        raise LostRace("Somebody opened this epoch first.", current)
    _record(
        "epoch opened", current, by=by, reason=reason,
        before={"epoch": current.epoch}, after={"epoch": epoch.epoch, "key": current.key},
    )  # fmt: skip
    return epoch


def _rule(effect: Effect, *, seen: State | str, must_be: State, by: Human, reason: str, act: str, **values: Any) -> Effect:
    """One conditional write and its entry, or LostRace with the row as it stands."""
    current = _locked(effect, by)
    if current.state != must_be or seen != must_be:
        who = current.settled_by or current.worker
        raise LostRace(f"This effect is {current.state} by now ({who}); look again before you rule on it.", current)
    moved = Effect.objects.filter(pk=current.pk, state=must_be).update(
        reason=reason, settled_by=by.actor.name, settled_at=Now(), ruled=True, look_up_at=None, **values
    )
    if moved != 1:
        raise LostRace("Somebody was first.", current)
    _record(act, current, by=by, reason=reason, before={"state": must_be}, after=_plain(values))
    return Effect.objects.get(pk=current.pk)


def _locked(effect: Effect, by: Human) -> Effect:
    return Effect.objects.select_for_update().get(pk=effect.pk, workspace_id=by.workspace_id)


def _plain(values: dict[str, Any]) -> dict[str, str]:
    return {name: "now" if isinstance(value, Now) else str(value) for name, value in values.items() if value}


def _superseded(current: Effect) -> str:
    if current.state != State.DONE:
        return f"This effect is {current.state}; only a done effect can be superseded."
    return "This effect's epoch was bumped already."


def _may(by: Human, act: Act) -> None:
    if not by.may(act):
        raise Refused(f"Your role may not {act.value}.")


def _needs(text: str, advice: str) -> None:
    if not text.strip():
        raise Refused(advice)


def _record(act: str, effect: Effect, *, by: Human, reason: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    chain.append(
        act,
        workspace_id=effect.workspace_id,
        by=by.actor,
        on=("effect", effect.pk, effect.target),
        reason=reason,
        before=before,
        after=after,
    )
