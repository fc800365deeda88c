"""What an agent's runtime says of its run: it started, these tools were called, it finished or failed.

Every write names the state it leaves and counts; a second one finds that somebody was first. Each leaves an entry in the record.
"""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts.errors import LostRace, Refused
from accounts.models import Token, Workspace
from audit import chain
from audit.chain import Actor
from runs.models import Run, RunState
from runs.queries import replay

MOST_CALLS = 10_000  # tool calls of one run


class ReplayRefused(Refused):
    """A run that may have done something is not replayed by a machine. `tools` are those it called; none: not known."""

    def __init__(self, run: Run, why: str) -> None:
        super().__init__(why)
        self.in_flight = run.state == RunState.RUNNING
        self.tools = None if run.tools is None else list(dict.fromkeys(run.tools))


@transaction.atomic
def start(
    workspace: Workspace,
    *,
    token: Token,
    agent: str,
    event_id: str,
    occurrence: datetime | None = None,
    replay_of: Run | None = None,
) -> Run:
    """A run in flight. Started again for one planned occurrence, it is the first run, in whatever state that is.

    Raises ReplayRefused when `replay_of` called a tool, is in flight, or its tools were never recorded.
    """
    for name, text in (("agent", agent), ("event_id", event_id)):
        if not text.strip() or "\0" in text:
            raise Refused(f"{name} is empty or holds a NUL character.")
    if replay_of is not None and not (answer := replay(replay_of)).allowed:
        raise ReplayRefused(replay_of, answer.why)
    shape: dict[str, Any] = {"agent": agent.strip(), "event_id": event_id.strip(), "occurrence": occurrence}
    try:
        with transaction.atomic():
            run = Run.objects.create(workspace=workspace, token=token, replay_of=replay_of, **shape)
    except IntegrityError:
        return Run.objects.get(workspace=workspace, replay_of=None, **shape)
    _record("run started", run, token, after={"event_id": run.event_id, "replay_of": replay_of.pk if replay_of else None})
    return run


@transaction.atomic
def record_tool_calls(run: Run, *, calls: list[dict[str, str]], token: Token) -> Run:
    """Append tool calls, in order; an empty list says that none was made so far. What was recorded stays.

    `calls` are `{"name": …, "arguments_digest": …}`; the digests stand in the record. Raises LostRace when the run has ended.
    """
    current = Run.objects.select_for_update().get(pk=run.pk)
    tools = [*(current.tools or []), *(call["name"] for call in calls)]
    if len(tools) > MOST_CALLS:
        raise Refused(f"A run records at most {MOST_CALLS:,} tool calls.")
    if Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(tools=tools) != 1:
        raise LostRace(f"This run has {current.state} already, so nothing can be added to it.", current)
    current.tools = tools
    _record("tool calls recorded", current, token, after={"calls": calls})
    return current


def finish(run: Run, *, token: Token, reason: str = "") -> Run:
    """The run came to its end. Raises LostRace when it had ended before."""
    return _end(run, RunState.FINISHED, token=token, reason=reason)


def fail(run: Run, *, token: Token, reason: str = "") -> Run:
    """The run broke off. Raises LostRace when it had ended before."""
    return _end(run, RunState.FAILED, token=token, reason=reason)


@transaction.atomic
def _end(run: Run, state: RunState, *, token: Token, reason: str) -> Run:
    if "\0" in reason:
        raise Refused("reason holds a NUL character.")
    moved = Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=state, reason=reason, ended_at=Now())
    run.refresh_from_db()
    if moved != 1:
        raise LostRace(f"This run has {run.state} already.", run)
    _record(f"run {state}", run, token, reason, before={"state": RunState.RUNNING}, after={"state": state})
    return run


def _record(
    act: str,
    run: Run,
    token: Token,
    reason: str = "",
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any],
) -> None:
    chain.append(
        act,
        workspace_id=run.workspace_id,
        by=Actor("token", token.pk, token.name),
        on=("run", run.pk, run.agent),
        reason=reason,
        before=before,
        after=after,
    )
