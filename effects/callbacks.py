"""Callbacks at their door: what a provider tells later is read strictly, and kept once. Nothing here settles anything.

The signature was checked before (`effects.signatures`), on the bytes as they came; those bytes are what is kept.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from django.db import connection
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from effects.models import Callback, Channel, Effect
from effects.news import Kind
from effects.statements import read_statements
from effects.verdicts import LONGEST_WORD

SQL = read_statements(Path(__file__).parent / "sql" / "callbacks.sql")
MOST = 100  # of one effect; a provider that tells more is out of order, and would fill the disk
PLAIN = r"^[^\x00]*$"  # no database takes a NUL

Count = Annotated[int, Field(ge=0, lt=2**31)]
Word = Annotated[str, Field(pattern=PLAIN, max_length=LONGEST_WORD)]
Moment = Annotated[AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2200, 1, 1, tzinfo=UTC))]


class Told(BaseModel):
    """The body: which effect, and what became of it. Unknown fields are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Kind
    key: Annotated[str, Field(pattern=PLAIN, min_length=1, max_length=80)]
    epoch: Count = 0
    attempt: Annotated[Count, Field(ge=1)] | None = None
    receipt: Word = ""
    reason: Word = ""
    at: Moment | None = None


class Malformed(ValueError):
    """The body cannot be read; `errors` are `[{field, error}]`."""

    def __init__(self, errors: list[dict[str, str]]) -> None:
        super().__init__("the body cannot be read")
        self.errors = errors


class NotOurs(LookupError):
    """No effect of this channel is meant."""


class Differs(Exception):
    """This event was kept before, with another body."""


class TooMany(Exception):
    """This effect has as many callbacks as one may have."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A callback that is on the disk; `again` when it was there before."""

    id: int
    again: bool


def read(raw: bytes) -> Told:
    """The body as types. Raises Malformed."""
    try:
        return Told.model_validate_json(raw)
    except ValidationError as error:
        raise Malformed([_error_of(one) for one in error.errors(include_url=False, include_context=False)]) from None


def keep(channel: Channel, *, event_id: str, told: Told, raw: bytes) -> Kept:
    """Keep one event of this channel. Told again with the same body it is the same; raises NotOurs, Differs or TooMany."""
    if known := _known(channel, event_id, raw):
        return known
    effect = _effect(channel, told)
    if effect.callbacks.count() >= MOST:
        raise TooMany
    with connection.cursor() as cursor:
        cursor.execute(SQL["keep"], _values(channel, event_id, effect, told, raw))
        inserted = cursor.fetchone()
    if inserted:
        return Kept(inserted[0], again=False)
    known = _known(channel, event_id, raw)
    assert known is not None, "who loses the insert finds the row that won"
    return known


def _known(channel: Channel, event_id: str, raw: bytes) -> Kept | None:
    found = Callback.objects.filter(channel=channel, event_id=event_id).values_list("pk", "raw").first()
    if found is None:
        return None
    if bytes(found[1]) != raw:
        raise Differs
    return Kept(found[0], again=True)


def _effect(channel: Channel, told: Told) -> Effect:
    """The attempt that is named, else the newest."""
    rows = Effect.objects.filter(channel=channel, workspace_id=channel.workspace_id, key=told.key, epoch=told.epoch)
    if told.attempt is not None:
        rows = rows.filter(attempt=told.attempt)
    effect = rows.only("attempt").order_by("-attempt").first()
    if effect is None:
        raise NotOurs
    return effect


def _values(channel: Channel, event_id: str, effect: Effect, told: Told, raw: bytes) -> dict[str, Any]:
    return {
        "workspace_id": channel.workspace_id,
        "channel_id": channel.pk,
        "event_id": event_id,
        "effect_id": effect.pk,
        "kind": told.type.value,
        "exact": told.attempt is not None or effect.attempt == 1,
        "receipt": told.receipt.strip(),
        "reason": told.reason.strip(),
        "said_at": told.at,
        "raw": raw,
    }


def _error_of(error: Any) -> dict[str, str]:
    known = {"extra_forbidden": "is not a field of a callback", "missing": "is missing", "json_invalid": "is no JSON"}
    return {"field": ".".join(map(str, error["loc"])) or "body", "error": known.get(error["type"], error["msg"])}
