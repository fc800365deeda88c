"""What pages ask of runs, and whether a run may be replayed."""

from dataclasses import dataclass

from django.db.models import FETCH_RAISE, QuerySet

from approvals.models import Plan
from effects.models import Effect
from runs.models import Run, RunState


def runs(workspace_id: int, *, agent: str = "", state: str = "") -> QuerySet[Run]:
    """Runs of a workspace; `agent` is part of the agent's name."""
    rows = Run.objects.filter(workspace_id=workspace_id).select_related("token")
    if agent:
        rows = rows.filter(agent__icontains=agent)
    if state:
        rows = rows.filter(state=state)
    return rows.fetch_mode(FETCH_RAISE)


def run_of(workspace_id: int, pk: int) -> Run | None:
    """One run, or none in this workspace."""
    return Run.objects.filter(workspace_id=workspace_id).select_related("token__owner", "replay_of").filter(pk=pk).first()


def plans_of(run: Run) -> list[Plan]:
    """What the run proposed, newest first."""
    rows = Plan.objects.filter(workspace_id=run.workspace_id, run_id=str(run.pk)).select_related("author", "token", "channel")
    return list(rows.defer("checks", "rationale").order_by("-id")[:100])


def effects_of(run: Run, *, most: int = 26) -> list[Effect]:
    """The newest effects that bear the run's name."""
    rows = Effect.objects.filter(workspace_id=run.workspace_id, run_id=str(run.pk)).exclude(run_id="")
    rows = rows.select_related("channel").order_by("-id")
    return list(rows.fetch_mode(FETCH_RAISE)[:most])


@dataclass(frozen=True)
class Replay:
    """May this run be replayed, and why not. `tools` are the tools it called, with how often."""

    allowed: bool
    why: str
    tools: list[tuple[str, int]]


def replay(run: Run) -> Replay:
    """The answer of design part 6: a run that called a tool, or of which nobody knows, is not replayed."""
    called = list(run.tools or [])
    tools = [(name, called.count(name)) for name in dict.fromkeys(called)]
    if run.state == RunState.RUNNING:
        return Replay(False, "It is still in flight; nobody can replay it, and no force passes this.", tools)
    if run.tools is None:
        return Replay(False, "Which tools it called was never recorded, and what is not known counts as called.", tools)
    if tools:
        return Replay(False, f"It called {', '.join(name for name, _ in tools)}; a replay would call them again.", tools)
    return Replay(True, "It called no tool, so a replay repeats nothing.", tools)
