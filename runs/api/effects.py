"""The ledger over the API, for reading."""

from typing import Annotated, Any

from ninja import Query, Router

from accounts.paging import page_of
from effects.models import Effect
from runs.api.auth import AgentRequest
from runs.api.problems import not_found
from runs.api.shapes import PLAIN, EffectShown, EffectsShown

router = Router(tags=["effects"])

SHOWN = ("key", "epoch", "attempt", "state", "tool", "target", "run_id", "receipt", "reason", "reserved_at", "settled_at")


@router.get("", response=EffectsShown, summary="Ledger rows")
def listed(
    request: AgentRequest,
    key: Annotated[str, Query(max_length=80, pattern=PLAIN)] = "",
    run_id: Annotated[int | None, Query(gt=0, lt=2**63)] = None,
    cursor: Annotated[int | None, Query(ge=0, lt=2**63, description="`next` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Newest first; `key` gives every attempt in every epoch of one effect."""
    rows = Effect.objects.filter(workspace=request.auth.workspace_id).only(*SHOWN)
    if key:
        rows = rows.filter(key=key)
    if run_id is not None:
        rows = rows.filter(run_id=str(run_id))
    page = page_of(rows, after=cursor, size=limit)
    return {"effects": [_shown(effect) for effect in page.rows], "next": page.more}


@router.get("/{id}", response=EffectShown, summary="One ledger row")
def show(request: AgentRequest, id: int) -> dict[str, Any]:
    """One attempt at one effect."""
    rows = Effect.objects.filter(workspace=request.auth.workspace_id).only(*SHOWN)
    effect = rows.filter(pk=id).first() if 0 < id < 2**63 else None
    if effect is None:
        raise not_found("effect")
    return _shown(effect)


def _shown(effect: Effect) -> dict[str, Any]:
    shown: dict[str, Any] = {name: getattr(effect, name) for name in SHOWN}
    run_id = int(effect.run_id) if effect.run_id.isdecimal() else effect.run_id or None
    return shown | {"id": effect.pk, "effect_id": effect.pk, "run_id": run_id}
