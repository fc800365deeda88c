"""A history, indexed: which row a call was for, which attempt was the newest when it came."""

from collections import defaultdict
from functools import cached_property

from tests.chaos.history import Call, Channel, Effect, History, Move, Plan, Row

FREEING = {"failed", "revoked"}
Identity = tuple[str, int]  # key and epoch


class Facts:
    """What the checks ask again and again. A call is matched by its marker and its time, not by a key it carried."""

    def __init__(self, history: History) -> None:
        self.history = history

    @cached_property
    def by_marker(self) -> dict[str, Row]:
        return {row.marker: row for row in self.history.rows if row.marker}

    @cached_property
    def plans(self) -> dict[int, Plan]:
        return {plan.id: plan for plan in self.history.plans}

    @cached_property
    def channels(self) -> dict[int, Channel]:
        return {channel.id: channel for channel in self.history.channels}

    @cached_property
    def attempts(self) -> dict[Identity, list[Effect]]:
        """Ledger rows by identity, in the order of their attempts."""
        found: defaultdict[Identity, list[Effect]] = defaultdict(list)
        for effect in sorted(self.history.effects, key=lambda effect: effect.attempt):
            found[effect.key, effect.epoch].append(effect)
        return found

    @cached_property
    def moves(self) -> dict[int, list[Move]]:
        found: defaultdict[int, list[Move]] = defaultdict(list)
        for move in self.history.moves:
            found[move.effect].append(move)
        return found

    @cached_property
    def calls(self) -> dict[Identity, list[Call]]:
        """Calls by the identity of the row whose marker they carried."""
        found: defaultdict[Identity, list[Call]] = defaultdict(list)
        for call in self.history.calls:
            if row := self.by_marker.get(call.marker):
                found[row.key, row.epoch].append(call)
        return found

    @cached_property
    def unmarked(self) -> dict[str, list[Call]]:
        """Calls that ended before their letter was seen, by target."""
        found: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self.history.calls:
            if not call.marker:
                found[call.target].append(call)
        return found

    @cached_property
    def of_effect(self) -> dict[int, list[Call]]:
        """Calls by the attempt that was the newest when they came."""
        found: defaultdict[int, list[Call]] = defaultdict(list)
        for identity, calls in self.calls.items():
            for call in calls:
                if newest := self.newest_at(identity, call.at):
                    found[newest.id].append(call)
        return found

    def newest_at(self, identity: Identity, at: float) -> Effect | None:
        """The newest attempt that was reserved by then."""
        reserved = [effect for effect in self.attempts.get(identity, []) if effect.reserved_at <= at]
        return reserved[-1] if reserved else None

    def newest(self, row: Row) -> Effect | None:
        """The newest attempt at a row's identity."""
        attempts = self.attempts.get((row.key, row.epoch))
        return attempts[-1] if attempts else None

    def deliveries(self, identity: Identity) -> list[Call]:
        """What was filed for this identity."""
        return [call for call in self.calls.get(identity, []) if call.filed]

    def opted_out(self, row: Row) -> float | None:
        """When the target of this row opted out, if it did."""
        plan = self.plans[row.plan]
        return self._opt_outs.get(
            (plan.workspace, row.target, plan.channel), self._opt_outs.get((plan.workspace, row.target, None))
        )

    @cached_property
    def _opt_outs(self) -> dict[tuple[int, str, int | None], float]:
        return {(one.workspace, one.target, one.channel): one.at for one in reversed(self.history.opt_outs)}

    @cached_property
    def approved(self) -> list[Row]:
        """A: the rows that were approved and not left out."""
        return [row for row in self.history.rows if self.plans[row.plan].approved_at and not row.excluded]

    @cached_property
    def lasting(self) -> list[Row]:
        """Those of A whose plan nobody stopped: each of them must come to an end."""
        return [row for row in self.approved if self.plans[row.plan].stopped_at is None]
