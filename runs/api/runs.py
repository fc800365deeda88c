"""Runs over the API: the agent's runtime tells what happens."""

from ninja import Router
from ninja.responses import Status

from runs import recording
from runs.api.auth import AgentRequest
from runs.api.idempotency import once
from runs.api.problems import not_found
from runs.api.shapes import Ending, NewRun, RunShown, RunWithTools, ToolCalls
from runs.models import Run

router = Router(tags=["runs"])


@router.post("", response={201: RunShown}, summary="Start a run")
@once
def start(request: AgentRequest, body: NewRun) -> Status[dict[str, object]]:
    """Started again for the same agent, event and planned occurrence, the answer is the first run."""
    run = recording.start(
        request.auth.workspace,
        token=request.auth,
        agent=body.agent,
        event_id=body.event_id,
        occurrence=body.occurrence,
        replay_of=_run(request, body.replay_of) if body.replay_of else None,
    )
    return Status(201, _shown(run))


@router.post("/{id}/tool-calls", response={201: RunWithTools}, summary="Record tool calls")
@once
def tool_calls(request: AgentRequest, id: int, body: ToolCalls) -> Status[dict[str, object]]:
    """Appended in order, never changed. An empty list says that no tool was called so far."""
    calls = [call.model_dump() for call in body.calls]
    run = recording.record_tool_calls(_run(request, id), calls=calls, token=request.auth)
    return Status(201, _shown(run) | {"tools": run.tools})


@router.post("/{id}/finish", response=RunShown, summary="Finish a run")
@once
def finish(request: AgentRequest, id: int, body: Ending | None = None) -> dict[str, object]:
    """The run came to its end."""
    return _shown(recording.finish(_run(request, id), token=request.auth, reason=body.reason if body else ""))


@router.post("/{id}/fail", response=RunShown, summary="Tell that a run broke off")
@once
def fail(request: AgentRequest, id: int, body: Ending | None = None) -> dict[str, object]:
    """The run broke off."""
    return _shown(recording.fail(_run(request, id), token=request.auth, reason=body.reason if body else ""))


def _run(request: AgentRequest, id: int) -> Run:
    run = Run.objects.filter(workspace=request.auth.workspace_id, pk=id).first() if 0 < id < 2**63 else None
    if run is None:
        raise not_found("run")
    return run


def _shown(run: Run) -> dict[str, object]:
    return {"id": run.pk, "state": run.state}
