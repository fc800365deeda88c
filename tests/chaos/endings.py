"""What must hold at the end, and of what was shown on the way: I17 to I23. Pure."""

import re
from collections import Counter

from config.sandbox.behaviours import behaviour_of
from tests.chaos.facts import Facts
from tests.chaos.safety import Found

PASSING = re.compile(r"(once-)?slow|once-(429|(rcpt|data|dot)-4\d\d|(rcpt|data)-(drop|reset|silent|garbage))")
# Messages at the broker: our own while nobody takes any for a minute (64 announcements every ten seconds, two beats that say two things
# every other second, and what is handed on), and what the nemesis adds each time.
QUEUED, REPEATED = 800, 200
CALM = 5.0  # seconds from approval to the first call, where nothing is broken
FIGURES = ("waiting", "pending", "done", "failed", "unknown", "stranded", "revoked", "covered")


def i17(facts: Facts) -> Found:
    """At the end every row of A has a ledger row, and none is on its way; but for those who opted out before."""
    for row in facts.lasting:
        if facts.opted_out(row):
            continue
        newest = facts.newest(row)
        own = any(effect.plan == row.plan for effect in facts.attempts.get((row.key, row.epoch), []))
        if newest is None:
            yield row.target, f"row {row.position} of plan {row.plan} was never tried"
        elif newest.state == "failed" and newest.retry_at is not None:
            yield row.target, f"attempt {newest.attempt} failed ({newest.reason}) and the next one never came"
        elif newest.state == "failed" and not own and not newest.ruled:
            yield row.target, f"plan {row.plan} lost it to another plan, where it failed; it was never tried again"
    for effect in facts.history.effects:
        if effect.state == "pending":
            yield effect.target, "is still pending"


def i18(facts: Facts) -> Found:
    """What met no fault is done: ordinary targets, unless a fault of ours took their reply."""
    for row in facts.lasting:
        newest = facts.newest(row)
        if not is_harmless(row.target) or newest is None or newest.state == "done" or facts.opted_out(row):
            continue
        first = facts.moves.get(newest.id, [])[:1]
        came_late = newest.kept is not None and any(newest.kept.at > move.at for move in first)  # its worker slept meanwhile
        lost = newest.state in ("unknown", "revoked") and (newest.kept is None or newest.kept.kind == "lost" or came_late)
        if not (lost and facts.history.faults) and not newest.ruled:
            yield row.target, f"met no fault of its own, and is {newest.state} ({newest.reason})"


def is_harmless(target: str) -> bool:
    """True for a target whose name asks the sandbox for nothing, or for what passes."""
    return all(PASSING.fullmatch(behaviour_of(target, front).name or "slow") for front in ("http", "smtp"))


def i19(facts: Facts) -> Found:
    """At the end every unknown row is on its workspace's desk, and nothing else is."""
    open_rows = Counter(effect.workspace for effect in facts.history.effects if effect.state == "unknown")
    for workspace, shown in facts.history.desk.items():
        if shown != open_rows[workspace]:
            yield f"workspace {workspace}", f"its desk shows {shown} unknown rows, and the ledger has {open_rows[workspace]}"


def i20(facts: Facts) -> Found:
    """Figures as they were shown add up at every sample, and what is done stays done."""
    most: Counter[int] = Counter()
    for sample in facts.history.samples:
        for plan, shown in sample.shown.items():
            if shown["rows"] != shown["excluded"] + sum(shown[name] for name in FIGURES):
                yield f"plan {plan}", f"its figures do not add up: {shown}"
            if shown["done"] < most[plan]:
                yield f"plan {plan}", f"showed {most[plan]} done, and later {shown['done']}"
            most[plan] = max(most[plan], shown["done"])


def i21(facts: Facts) -> Found:
    """Where nothing was broken, ordinary rows are called soon after their approval, whoever else rests."""
    if facts.history.faults:
        return
    for row in facts.lasting:
        calls = facts.calls.get((row.key, row.epoch), [])
        approved = facts.plans[row.plan].approved_at or 0.0
        if is_harmless(row.target) and calls and min(call.at for call in calls) > approved + CALM:
            yield row.target, f"waited {min(call.at for call in calls) - approved:.1f} s for its first call, with nothing broken"


def i22(facts: Facts) -> Found:
    """The broker never holds more than a few messages, over and above those that were repeated on purpose within a minute."""
    repeats = [fault.at for fault in facts.history.faults if fault.name == "repeat messages"]
    for sample in facts.history.samples:
        if sample.queued > QUEUED + REPEATED * sum(sample.at - 60 < at <= sample.at for at in repeats):
            yield f"sample at {sample.at:.1f}", f"{sample.queued} messages waited at the broker"


def i23(facts: Facts) -> Found:
    """No secret and nothing of a letter in a log."""
    for log, kind in facts.history.leaks:
        yield log, f"holds {kind}"
