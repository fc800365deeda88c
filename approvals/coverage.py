"""Coverage: did every approved target get exactly one effect? Read from the ledger, never written beside it."""

from pathlib import Path

from django.db import connection

from approvals.models import Plan

FIGURES = ("waiting", "pending", "done", "failed", "unknown", "stranded", "revoked", "covered")
COUNTS = (Path(__file__).parent / "sql" / "counts.sql").read_text()


def counts(plan: Plan) -> dict[str, int]:
    """The closing sum of a plan: rows and excluded, then `FIGURES`, which add up to rows - excluded.

    It costs a look at the plan's own effects, however many rows still wait: those are what is left.
    """
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"plan_id": plan.pk})
        told = dict.fromkeys(("excluded", *FIGURES), 0) | dict(cursor.fetchall())
    return {"rows": plan.row_count} | told | {"waiting": plan.row_count - sum(told.values())}


def is_settled(figures: dict[str, int]) -> bool:
    """True when nothing is waiting, under way, or in front of a person."""
    return not (figures["waiting"] or figures["pending"] or figures["unknown"] or figures["stranded"])
