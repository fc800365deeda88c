"""The whole product under measurement: an approved plan of N rows to a settled ledger, by `celery -A config worker`."""

import time
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Max

from accounts.models import Membership, Token, User, Workspace, digest_of, new_secret
from approvals import plans, voting
from approvals.coverage import counts
from approvals.incoming import NewRow
from approvals.models import Plan
from audit.chain import Actor
from effects import channels
from effects.actors import Human
from effects.models import Channel, Effect


class Product:
    """A workspace with an agent and a reviewer, and plans made for them."""

    def __init__(self, url: str, window: int) -> None:
        self.workspace = Workspace.objects.create(slug="bench", name="Bench")
        self.password, self.secret = new_secret(), new_secret()
        self.reviewer, owner, auditor = (
            User.objects.create_user(f"{name}@bench.example", self.password) for name in ("alice", "bob", "ed")
        )
        for user, role in ((self.reviewer, "reviewer"), (auditor, "auditor")):
            Membership.objects.create(workspace=self.workspace, user=user, role=role)
        self.token = Token.objects.create(
            workspace=self.workspace, name="bench", owner=owner, digest=digest_of(self.secret), prefix="sgn_bench"
        )
        self.channel: Channel = channels.add(
            self.workspace, slug="http", provider="http", settings={"url": url, "window": str(window), "timeout": "20"},
            secrets={}, by=Actor("command", None, "make bench"),
        )  # fmt: skip

    def proposed(self, n: int) -> Plan:
        """A plan of n finished letters, waiting for approval."""
        event = f"event-{time.monotonic_ns()}"
        plan = plans.open_plan(
            self.workspace,
            token=self.token,
            run_id="",
            title=f"{n} letters",
            tool="send_email",
            channel=self.channel,
            event_id=event,
        )
        text = "Dear you,\n" + "x" * 400
        rows = (NewRow(target=f"customer{i}@example.com", subject="Good news", text=text) for i in range(n))
        plans.load(plan, rows, token=self.token)
        return plans.submit(plan, token=self.token)

    def approve(self, plan: Plan) -> None:
        """As Alice, ticking whatever warns."""
        human = Human(self.reviewer, self.workspace.pk)
        ticked = frozenset(check["code"] for check in plan.checks)
        voting.approve(plan, by=human, digest=plan.digest, ticked=ticked)

    def rows_not_done_once(self, plan: int) -> tuple[int, int]:
        """How many rows of a plan have no done effect, and how many have several, asked row by row."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FILTER (WHERE done = 0), count(*) FILTER (WHERE done > 1) FROM ("
                "  SELECT count(e.id) AS done FROM approvals_row r"
                "  LEFT JOIN effects_effect e ON e.key = r.key AND e.epoch = r.epoch AND e.state = 'done'"
                "  WHERE r.plan_id = %s GROUP BY r.id) told",
                (plan,),
            )
            none, several = cursor.fetchone()
        return none, several

    def rows_that_differ(self, plan: int, other: int) -> int:
        """How many rows of two plans differ in what was handed in, or stand in one of them alone."""
        columns = "position, target_typed, target, subject, text, html, payload, amount_minor, record, content_digest"
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT count(*) FROM (SELECT {columns} FROM approvals_row WHERE plan_id IN (%s, %s) "
                f"GROUP BY {columns} HAVING count(*) <> 2) different",
                (plan, other),
            )
            return int(cursor.fetchone()[0])

    def settled_at(self, plan: Plan, patience: float = 120.0) -> datetime:
        """When the last row of the plan was settled; waits for it."""
        deadline = time.monotonic() + patience
        while Effect.objects.filter(plan_id=plan.pk, state="done").count() < plan.row_count:
            if time.monotonic() > deadline:
                raise SystemExit(f"the plan did not settle within {patience:.0f} s: {counts(plan)}")
            time.sleep(0.1)
        moment: datetime = Effect.objects.filter(plan_id=plan.pk).aggregate(last=Max("settled_at"))["last"]
        return moment.astimezone(UTC)

    def workers_of(self, plan: Plan) -> int:
        """How many processes sent rows of this plan."""
        return Effect.objects.filter(plan_id=plan.pk).values("worker").distinct().count()


def database_figures() -> dict[str, Any]:
    """Commits so far, and the place in the write-ahead log."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT pg_current_wal_lsn()::text, (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())"
        )
        lsn, commits = cursor.fetchone()
    return {"lsn": lsn, "commits": commits}


def wal_since(lsn: str) -> int:
    """Bytes of write-ahead log since then."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s::pg_lsn)", (lsn,))
        return int(cursor.fetchone()[0])
