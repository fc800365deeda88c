"""What the API takes and gives, as types. Bodies refuse unknown fields, and convert nothing: a number in quotes is no number."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from approvals.models import PlanState
from effects.states import State
from runs.models import RunState

Id = Annotated[int, Field(gt=0, lt=2**63)]
PLAIN = r"^[^\x00]*$"  # no database takes a NUL
Plain = Annotated[str, Field(pattern=PLAIN)]
Text = Annotated[Plain, Field(max_length=100_000)]
Name = Annotated[Plain, Field(min_length=1, max_length=120)]
Event = Annotated[Plain, Field(min_length=1, max_length=500)]


def _text_of_a_time(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError("must be a time as text, such as 2027-03-01T09:00:00Z")
    return value


Moment = Annotated[AwareDatetime | None, Strict(False), BeforeValidator(_text_of_a_time)]


class Taken(BaseModel):
    """A body."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewRun(Taken):
    agent: Name
    event_id: Event
    occurrence: Moment = Field(None, description="the planned occurrence of a schedule; started twice, it is one run")
    replay_of: Id | None = None


class ToolCall(Taken):
    name: Annotated[Plain, Field(min_length=1, max_length=200)]
    arguments_digest: Annotated[Plain, Field(max_length=200)] = ""


class ToolCalls(Taken):
    calls: Annotated[list[ToolCall], Field(max_length=1000, description="in order; empty: none was made so far")]


class Ending(Taken):
    reason: Text = ""


class NewPlan(Taken):
    run_id: Id
    title: Annotated[Plain, Field(min_length=1, max_length=200)]
    tool: Annotated[Plain, Field(min_length=1, max_length=80)]
    channel: Annotated[Plain, Field(min_length=1, max_length=50, description="the slug of the channel")]
    event_id: Event
    scope: Annotated[Plain, Field(max_length=400)] = ""
    rationale: Text = ""
    currency: Annotated[Plain, Field(max_length=3)] = ""
    replaces: Id | None = Field(None, description="the plan of which this is the next version")


class Withdrawal(Taken):
    reason: Annotated[Plain, Field(min_length=1, max_length=100_000)]


class RunShown(BaseModel):
    id: int
    state: RunState


class RunWithTools(RunShown):
    tools: list[str]


class PlanOpened(BaseModel):
    id: int
    state: PlanState
    version: int


class Loaded(BaseModel):
    rows: int = Field(description="rows added by this load")
    total: int = Field(description="rows in the plan now")


class Check(BaseModel):
    code: str
    blocking: bool
    text: str
    count: int
    positions: list[int] = Field(description="the first twenty rows concerned")


class PlanSubmitted(BaseModel):
    id: int
    state: PlanState
    digest: str
    checks: list[Check]


class Counts(BaseModel):
    rows: int
    excluded: int
    waiting: int
    pending: int
    done: int
    failed: int
    unknown: int
    stranded: int
    revoked: int
    covered: int


class Word(BaseModel):
    kind: str
    reason: str
    at: datetime


class PlanShown(BaseModel):
    id: int
    state: PlanState
    digest: str
    version: int
    counts: Counts
    decision: Word | None = Field(description="what a person decided last, and why")
    seen: str = Field(description="pass it as `?seen=` to wait for the next change")


class RowShown(BaseModel):
    position: int
    target: str
    key: str
    epoch: int
    attempt: int | None
    state: str = Field(description="as `counts` counts it: a state, or excluded, waiting, covered")
    receipt: str
    reason: str
    effect_id: int | None


class RowsShown(BaseModel):
    rows: list[RowShown]
    next: int | None


class EffectShown(BaseModel):
    id: int
    effect_id: int
    key: str
    epoch: int
    attempt: int
    state: State
    tool: str
    target: str
    run_id: int | str | None
    receipt: str
    reason: str
    reserved_at: datetime
    settled_at: datetime | None


class EffectsShown(BaseModel):
    effects: list[EffectShown]
    next: int | None


class ProblemShown(BaseModel):
    """Any error; `application/problem+json`."""

    status: int
    code: str
    title: str
    detail: str
    errors: list[dict[str, Any]] | None = None
