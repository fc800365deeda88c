"""Did the run reach what it claims to try? And the tally. Pure."""

from collections import Counter
from collections.abc import Iterable

from tests.chaos.checking import Violation
from tests.chaos.facts import Facts
from tests.chaos.history import History

STATES = ("done", "failed", "unknown", "stranded", "revoked")  # pending is every row's beginning


def missing(history: History, *, names: Iterable[str], acts: Iterable[str]) -> list[str]:
    """What was not reached: behaviours and acts (C1), states (C2), repeated work (C3), a worker that woke too late (C5)."""
    met = {call.name.partition(".")[0] for call in history.calls}
    seen = {move.after for move in history.moves}
    fired = {fault.name for fault in history.faults}
    gaps = [f"the behaviour {name} was never met" for name in sorted(set(names) - met)]
    gaps += [f"the act {act!r} was never done" for act in acts if act not in fired]
    gaps += [f"no row became {state}" for state in STATES if state not in seen]
    if not any(callback.outcome == "settled" for callback in history.callbacks):
        gaps.append("no callback settled a row")
    if not withheld(history):
        gaps.append("no opt-out came in time to withhold anything")
    if acts and not late_replies(history):
        gaps.append("no worker woke after its row had moved on")
    return gaps


def withheld(history: History) -> int:
    """Rows of approved plans that were never tried, since their target opted out."""
    facts = Facts(history)
    return sum(facts.newest(row) is None and facts.opted_out(row) is not None for row in facts.approved)


def late_replies(history: History) -> int:
    """Replies kept after somebody else had spoken for their row, and claims that were too old when their worker woke (C5)."""
    first = {}
    for move in history.moves:
        first.setdefault(move.effect, move.at)
    return sum(
        bool(effect.kept and (effect.kept.at > first.get(effect.id, effect.kept.at) or effect.kept.at > effect.reserved_at + 10))
        for effect in history.effects
    )


def tally(history: History, violations: Iterable[Violation]) -> dict[str, object]:
    """The figures of a run."""
    facts = Facts(history)
    states = Counter(newest.state if (newest := facts.newest(row)) else "none" for row in facts.approved)
    unknown = {(effect.key, effect.epoch) for effect in history.effects if effect.state == "unknown"}
    return {
        "plans": sum(plan.approved_at is not None for plan in history.plans),
        "targets": len(facts.approved),
        **dict(sorted(states.items())),
        "calls": len(history.calls),
        "deliveries": sum(call.filed for call in history.calls),
        "duplicates": sum(violation.invariant == "I1" for violation in violations),
        "unknown and delivered": sum(bool(facts.deliveries(identity)) for identity in unknown),
        "callbacks": len(history.callbacks),
        "settled by a callback": sum(callback.outcome == "settled" for callback in history.callbacks),
        "withheld": withheld(history),
        "late replies": late_replies(history),
        "faults": len(history.faults),
        "slowest recovery": round(slowest_recovery(history), 1),
    }


def slowest_recovery(history: History) -> float:
    """The longest wait from the end of a fault to the next delivery, in seconds."""
    times = sorted(call.at for call in history.calls if call.filed)
    waits = [min((at - fault.until for at in times if at >= fault.until), default=0.0) for fault in history.faults]
    return max(waits, default=0.0)
