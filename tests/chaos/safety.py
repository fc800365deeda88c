"""What must hold at every moment: I1 to I16, each as a function from facts to what breaks it (of whom, and how). Pure."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.facts import FREEING, Facts
from tests.chaos.history import Call, Effect, Row

GRACE = 0.5  # seconds by which the provider may see a call later than it was written
STOP_WITHIN = 1.0  # seconds after a stop or an opt-out in which calls may still begin
FINAL = {"done", "failed", "revoked"}
ARROWS = {
    *(("pending", after) for after in ("done", "failed", "unknown", "stranded")),
    *(("unknown", after) for after in ("done", "failed", "stranded", "revoked")),
    ("stranded", "revoked"),
}
RESTING = re.compile(rb"HTTP/1\.1 (429|401|403) |[45]35 |454 ")

Found = Iterator[tuple[str, str]]


def i1(facts: Facts) -> Found:
    """At most one delivery for each identity, unless a person said that the first did not happen."""
    for identity, attempts in facts.attempts.items():
        deliveries = sorted(facts.deliveries(identity), key=lambda call: call.at)
        for first, second in pairwise(deliveries):
            excused = any(
                move.before == "unknown" and move.after == "failed" and first.at < move.at < second.at and effect.ruled
                for effect in attempts
                for move in facts.moves.get(effect.id, [])
            )
            if not excused:
                yield second.target, f"delivered {len(deliveries)} times, {second.at - first.at:.2f} s apart"


def i2(facts: Facts) -> Found:
    """Done means that it was delivered, and that the receipt is one the provider gave."""
    for effect in facts.history.effects:
        if effect.state == "done":
            receipts = {call.receipt for call in facts.deliveries((effect.key, effect.epoch))}
            if not receipts:
                yield effect.target, "done, and never delivered"
            elif effect.receipt not in receipts:
                yield effect.target, f"done with the receipt {effect.receipt!r}, which the provider never gave for it"


def i3(facts: Facts) -> Found:
    """Failed means that nothing was delivered by that attempt."""
    for effect in facts.history.effects:
        if effect.state == "failed" and any(call.filed for call in facts.of_effect.get(effect.id, [])):
            yield effect.target, f"attempt {effect.attempt} is failed ({effect.reason}), and was delivered"


def i4(facts: Facts) -> Found:
    """Nothing leaves after a revocation."""
    yield from _late(facts, {"revoked"})


def i5(facts: Facts) -> Found:
    """No machine calls again after unknown; nothing leaves once a row has been settled."""
    yield from _late(facts, {"unknown", "done", "failed", "stranded"})


def _late(facts: Facts, states: set[str]) -> Found:
    """Calls that came when the newest attempt was no longer pending, but in one of these states."""
    for effect in facts.history.effects:
        for call in facts.of_effect.get(effect.id, []):
            moved = [move for move in facts.moves.get(effect.id, []) if move.at + GRACE < call.at]
            if moved and moved[-1].after in states:
                yield effect.target, f"called {call.at - moved[-1].at:.2f} s after it had become {moved[-1].after}"


def i6(facts: Facts) -> Found:
    """Stranded means that it was created once, and never completed."""
    for effect in facts.history.effects:
        if effect.state == "stranded" and not effect.ruled:
            creations = [call for call in facts.of_effect.get(effect.id, []) if call.content is not None]
            if len(creations) != 1:
                yield effect.target, f"stranded, and created {len(creations)} times"
            if any(call.filed for call in facts.of_effect.get(effect.id, [])):
                yield effect.target, "stranded, and completed"


def i7(facts: Facts) -> Found:
    """Deliveries only to rows of A, after their approval, and none begun after a stop or an opt-out."""
    for call in facts.history.calls:
        row = facts.by_marker.get(call.marker)
        if row is None:
            if call.filed:
                yield call.target, f"delivered, and no plan has a row with the marker {call.marker!r}"
            continue
        plan = facts.plans[row.plan]
        if row.excluded or plan.approved_at is None or call.at < plan.approved_at:
            yield (
                call.target,
                f"called for plan {plan.id}, which is {plan.state}, row {row.position}, which was not approved then",
            )
        if call.target != row.target:
            yield call.target, f"got the letter that was approved for {row.target}"
        newest = facts.newest_at((row.key, row.epoch), call.at)
        for end, what in ((plan.stopped_at, f"plan {plan.id} was stopped"), (facts.opted_out(row), "they opted out")):
            if end and newest and newest.reserved_at > end and call.at > end + STOP_WITHIN:
                yield call.target, f"called {call.at - end:.2f} s after {what}"


def i8(facts: Facts) -> Found:
    """What was sent is what was frozen, and that is what was decided on."""
    for call in facts.history.calls:
        row = facts.by_marker.get(call.marker)
        if row and call.content is not None and not _is_frozen(call, row):
            yield call.target, "what arrived is not what was approved"
    rows = {(row.plan, row.key, row.epoch): row for row in facts.history.rows}
    for effect in facts.history.effects:
        own = rows.get((effect.plan or 0, effect.key, effect.epoch))
        if own and own.digest != effect.digest:
            yield effect.target, "the ledger holds another digest than the row"
    for plan in facts.history.plans:
        if plan.approved_at and plan.digest != plan.decided_digest:
            yield f"plan {plan.id}", "the decision is bound to another digest than the plan's"


def _is_frozen(call: Call, row: Row) -> bool:
    content = call.content or {}
    if call.front == "smtp":
        sent = tuple(str(content.get(name, "")).rstrip("\n") for name in ("subject", "text", "html"))
        return sent == tuple(text.rstrip("\n") for text in (row.subject, row.text, row.html))
    return content_digest(content) == row.digest


def content_digest(content: dict[str, object]) -> str:
    """The digest of a content by its definition: SHA-256 over a label and length-prefixed fields."""
    payload, amount = content.get("payload"), content.get("amount_minor")
    packed = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if payload is not None else ""
    fields = [str(content.get(name, "")) for name in ("to", "subject", "text", "html")]
    hasher = hashlib.sha256(b"signoff content 1")
    for field in [*fields, packed, "" if amount is None else str(amount)]:
        hasher.update(b"%d:" % len(field.encode()) + field.encode())
    return f"sha256:{hasher.hexdigest()}"


def i9(facts: Facts) -> Found:
    """Every call has a claim that was committed before it, and carries that claim's identity."""
    for identity, calls in facts.calls.items():
        for call in calls:
            claim = facts.newest_at(identity, call.at)
            if claim is None:
                yield call.target, "called before anything was reserved for it"
            elif call.keys and f"{identity[0]}:{identity[1]}" not in call.keys:
                yield call.target, "called with the identity of another effect"
            elif call.attempt is not None and call.attempt > claim.attempt:
                yield call.target, f"called as attempt {call.attempt} while only {claim.attempt} were reserved"


def i10(facts: Facts) -> Found:
    """The raw reply is kept before the state that was drawn from it, byte for byte."""
    proven = {look_up.effect for look_up in facts.history.look_ups if look_up.answer == "found"}
    proven |= {callback.effect for callback in facts.history.callbacks if callback.outcome == "settled"}
    for effect in facts.history.effects:
        moves = facts.moves.get(effect.id, [])
        first = moves[0] if moves else None
        if first is None:
            continue
        found = effect.id in proven
        if effect.kept is None and first.after != "unknown" and not (first.after == "done" and found):
            yield effect.target, f"became {first.after} without a kept reply"
        late = first.after == "unknown" or found or first.by.startswith("sweeper")  # it came after somebody spoke for the row
        if effect.kept and effect.kept.at >= first.at and not late:
            yield effect.target, f"became {first.after} before its reply was kept"
        if effect.kept and not _was_written(effect, facts.calls.get((effect.key, effect.epoch), []), facts):
            yield effect.target, "the kept reply is not what the provider wrote"


def _was_written(effect: Effect, calls: list[Call], facts: Facts) -> bool:
    kept = effect.kept
    if kept is None or kept.kind not in ("answered", "lost"):
        return True
    calls = [*calls, *facts.unmarked.get(effect.target, [])]
    if (
        "@" in facts.channels[effect.channel].account
    ):  # a mail channel's is its sender; its provider may have died before it noted a call
        last = kept.raw.splitlines()[-1:] or [b""]
        return kept.kind == "lost" or any(last[0].partition(b" ")[2] == call.answer for call in calls)
    if kept.kind == "answered":
        return any(kept.raw == call.answer for call in calls)
    return any(call.answer.startswith(kept.raw) for call in calls) or not kept.raw


def i11(facts: Facts) -> Found:
    """States move only along the arrows, final rows never change, attempts are numbered without gaps."""
    for effect in facts.history.effects:
        state = "pending"
        for move in facts.moves.get(effect.id, []):
            if move.before != state or (move.before, move.after) not in ARROWS:
                yield effect.target, f"moved from {move.before} to {move.after} when it was {state}"
            state = move.after
        if state != effect.state:
            yield effect.target, f"is {effect.state}, and its trail ends at {state}"
    for attempts in facts.attempts.values():
        if [effect.attempt for effect in attempts] != list(range(1, len(attempts) + 1)):
            yield attempts[0].target, f"has attempts {[effect.attempt for effect in attempts]}"
    ends = {effect.id: effect.state for effect in facts.history.effects}
    for sample in facts.history.samples:
        for id, state in sample.states.items():
            if state in FINAL and ends.get(id) != state:
                yield f"effect {id}", f"was {state} and is {ends.get(id, 'gone')}"


def i12(facts: Facts) -> Found:
    """An epoch above 0 was opened by a named person before anything was reserved in it."""
    opened = {(epoch.key, epoch.epoch): epoch for epoch in facts.history.epochs}
    for effect in facts.history.effects:
        epoch = opened.get((effect.key, effect.epoch))
        if effect.epoch and (epoch is None or epoch.opened_by is None or epoch.opened_at > effect.reserved_at):
            yield effect.target, f"was reserved in epoch {effect.epoch}, which nobody had opened"


def i13(facts: Facts) -> Found:
    """At most one live claim for each identity, at every moment and every sample."""
    for attempts in facts.attempts.values():
        for earlier, later in pairwise(attempts):
            freed = [move.at for move in facts.moves.get(earlier.id, []) if move.after in FREEING]
            if not freed or freed[0] > later.reserved_at:
                yield later.target, f"attempt {later.attempt} was reserved while attempt {earlier.attempt} was live"
    for sample in facts.history.samples:
        if sample.double:
            yield f"sample at {sample.at:.1f}", f"{sample.double} identities had two live claims"


def i14(facts: Facts) -> Found:
    """Each settled row has its trail; each act of a person stands in the record, once."""
    acts = Counter((entry.kind, entry.object, entry.act) for entry in facts.history.entries)
    for effect in facts.history.effects:
        if effect.state != "pending" and not facts.moves.get(effect.id):
            yield effect.target, f"is {effect.state} without a trail"
        if effect.ruled:
            act = "effect revoked" if effect.state == "revoked" else f"effect resolved as {effect.state}"
            told = acts["effect", effect.id, act] + acts["effect", effect.id, "effect resolved as revoked"] * (
                act == "effect revoked"
            )
            if told != 1:
                yield effect.target, f"was ruled {effect.state}, and the record tells of it {told} times"
    for plan in facts.history.plans:
        told = acts["plan", plan.id, "plan approved"]
        if told != int(plan.approved_at is not None):
            yield f"plan {plan.id}", f"is {plan.state}, and the record tells of {told} approvals"


def i15(facts: Facts) -> Found:
    """Nobody decided on their own work. (That the decision has the right digest is I8.)"""
    for plan in facts.history.plans:
        if plan.approved_at and (plan.decided_by is None or plan.decided_by == plan.author):
            yield f"plan {plan.id}", f"was approved by {plan.decided_by}, who answers for it"


def i16(facts: Facts) -> Found:
    """No tenant's row goes out by another's account, and no provider's word rests another channel than its own."""
    for call in facts.history.calls:
        row = facts.by_marker.get(call.marker)
        if row and facts.channels[facts.plans[row.plan].channel].account != call.account:
            yield call.target, f"went out by the account {call.account!r}, which is not its plan's"
    for effect in facts.history.effects:
        owners = {effect.workspace, facts.channels[effect.channel].workspace}
        if effect.plan in facts.plans:
            owners.add(facts.plans[effect.plan].workspace)
        if len(owners) > 1:
            yield effect.target, f"belongs to workspaces {sorted(owners)}"
    for pause in facts.history.pauses:
        kind, _, number = pause.subject.partition(":")
        if kind == "channel" and pause.started_by.count(":") == 2 and int(number) in facts.channels:  # a worker's
            account = facts.channels[int(number)].account
            asked = any(
                call.account == account and RESTING.match(call.answer) and call.at <= pause.started_at
                for call in facts.history.calls
            )
            if not asked:
                yield pause.subject, "was rested, and its provider never asked for that"
