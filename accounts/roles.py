"""Who may do what: one table from role to acts. Pure; nothing else in Signoff asks for a role by name.

Four eyes is not in the table: nobody decides on their own work in any role (see `approvals.voting`).
"""

from enum import StrEnum


class Act(StrEnum):
    """One thing a person may do in a workspace; a view names exactly one."""

    READ = "read"  # see runs, plans, effects, the desk and the record
    READ_RAW = "read raw replies"  # see what the provider answered, byte for byte
    DECIDE = "decide on plans"  # approve, reject, request changes
    HALT = "pause and stop"  # pause, resume, stop
    OPT_OUT = "keep opt-outs"  # note who wants nothing more, and lift that
    RESOLVE = "resolve effects"  # resolve an unknown, revoke, ask the provider again
    BUMP = "open epochs"  # supersede a done effect
    EXPORT = "export the record"
    EXPORT_PLAN = "export plans"  # take away the rows of a plan, with what became of each


class Role(StrEnum):
    """A person's part in one workspace."""

    REVIEWER = "reviewer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    ADMIN = "admin"


MAY: dict[Role, frozenset[Act]] = {
    Role.REVIEWER: frozenset({Act.READ, Act.DECIDE, Act.HALT, Act.OPT_OUT, Act.EXPORT_PLAN}),
    Role.OPERATOR: frozenset({Act.READ, Act.READ_RAW, Act.HALT, Act.OPT_OUT, Act.RESOLVE, Act.BUMP}),
    Role.AUDITOR: frozenset({Act.READ, Act.READ_RAW, Act.EXPORT, Act.EXPORT_PLAN}),
    Role.ADMIN: frozenset(Act),
}


def may(role: str, act: Act) -> bool:
    """True when `role` may do `act`. An unknown role may do nothing."""
    try:
        return act in MAY[Role(role)]
    except ValueError:
        return False
