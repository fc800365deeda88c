"""The final read: the journal and the database, each by itself, into a history. Plain SQL over a read-only connection of its own."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg

from config.sandbox import journal
from tests.chaos.history import (
    Call,
    Callback,
    Channel,
    Effect,
    Entry,
    Epoch,
    Fault,
    History,
    Kept,
    LookUp,
    Move,
    OptOut,
    Pause,
    Plan,
    Row,
    Sample,
)

EFFECTS = """
SELECT e.id, e.workspace_id, e.channel_id, e.key, e.epoch, e.attempt, e.state, e.target, e.content_digest, e.plan_id, e.worker,
       extract(epoch FROM e.reserved_at)::float8, extract(epoch FROM e.settled_at)::float8, e.receipt, e.reason, e.settled_by, e.ruled,
       extract(epoch FROM e.retry_at)::float8, k.kind, k.raw, extract(epoch FROM k.at)::float8
FROM effects_effect e LEFT JOIN effects_keptreply k ON k.effect_id = e.id WHERE e.workspace_id = ANY(%s)"""
MOVES = """
SELECT v.effect_id, extract(epoch FROM v.at)::float8, v.before, v.after, v.by
FROM effects_event v JOIN effects_effect e ON e.id = v.effect_id WHERE e.workspace_id = ANY(%s) ORDER BY v.id"""
ROWS = """
SELECT r.plan_id, r.position, r.key, r.epoch, r.target, r.content_digest, r.subject, r.text, r.html, r.excluded_reason <> ''
FROM approvals_row r JOIN approvals_plan p ON p.id = r.plan_id WHERE p.workspace_id = ANY(%s)"""
PLANS = """
SELECT p.id, p.workspace_id, p.channel_id, p.state, p.digest, extract(epoch FROM d.at)::float8, coalesce(d.digest, ''),
       (SELECT extract(epoch FROM max(a.at))::float8 FROM audit_entry a
        WHERE a.object_kind = 'plan' AND a.object_id = p.id AND a.act = 'plan stopped'), p.author_id, d.by_id
FROM approvals_plan p LEFT JOIN approvals_decision d ON d.plan_id = p.id AND d.kind = 'approved' WHERE p.workspace_id = ANY(%s)"""
CHANNELS = "SELECT id, workspace_id, provider, settings FROM effects_channel WHERE workspace_id = ANY(%s)"
PAUSES = "SELECT subject, started_by, extract(epoch FROM started_at)::float8 FROM effects_pause WHERE workspace_id = ANY(%s)"
OPT_OUTS = """
SELECT workspace_id, channel_id, target, extract(epoch FROM at)::float8 FROM approvals_optout WHERE workspace_id = ANY(%s)"""
LOOK_UPS = """
SELECT l.effect_id, extract(epoch FROM l.at)::float8, l.answer
FROM effects_lookup l JOIN effects_effect e ON e.id = l.effect_id WHERE e.workspace_id = ANY(%s)"""
CALLBACKS = "SELECT effect_id, kind, outcome FROM effects_callback WHERE workspace_id = ANY(%s)"
EPOCHS = "SELECT key, epoch, extract(epoch FROM opened_at)::float8, opened_by_id FROM effects_epoch WHERE workspace_id = ANY(%s)"
ENTRIES = "SELECT act, object_kind, object_id, actor_kind FROM audit_entry WHERE workspace_id = ANY(%s)"
DOUBLE = """
SELECT count(*) FROM (
    SELECT FROM effects_effect WHERE state IN ('pending', 'done', 'unknown', 'stranded') GROUP BY key, epoch HAVING count(*) > 1) d"""
STATES = "SELECT id, state FROM effects_effect WHERE workspace_id = ANY(%s)"
# Rows that a machine has still to do with: reserved, waiting for another attempt or a look-up, or never tried by their own plan.
MOVING = """
SELECT count(*) FROM approvals_row r JOIN approvals_plan p ON p.id = r.plan_id
LEFT JOIN LATERAL (SELECT state, retry_at, look_up_at, plan_id, ruled FROM effects_effect e WHERE e.key = r.key AND e.epoch = r.epoch
                   ORDER BY attempt DESC LIMIT 1) n ON true
WHERE p.workspace_id = ANY(%s) AND p.state = 'approved' AND r.excluded_reason = ''
  AND (n.state = 'pending' OR n.look_up_at IS NOT NULL OR NOT EXISTS (  -- nobody waits for what will never be sent
      SELECT FROM approvals_optout o WHERE o.workspace_id = p.workspace_id AND o.target = r.target
      AND coalesce(o.channel_id, p.channel_id) = p.channel_id))
  AND (n.state IS NULL OR n.state = 'pending' OR n.retry_at IS NOT NULL OR n.look_up_at IS NOT NULL
       OR (n.state = 'failed' AND NOT n.ruled AND NOT EXISTS (
           SELECT FROM effects_effect own WHERE own.key = r.key AND own.epoch = r.epoch AND own.plan_id = r.plan_id)))"""


def connect(address: str) -> psycopg.Connection[Any]:
    """A connection that reads and cannot write."""
    return psycopg.connect(address, autocommit=True, options="-c default_transaction_read_only=on", connect_timeout=5)


def history_of(
    address: str, file: Path, workspaces: list[int], *, samples: Iterable[Sample] = (), faults: Iterable[Fault] = ()
) -> History:
    """Everything that happened in these workspaces, in one snapshot of the database."""
    with connect(address) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        def ask(query: str) -> list[tuple[Any, ...]]:
            return connection.execute(query, (workspaces,)).fetchall()

        channels = [Channel(id, workspace, _account(provider, settings)) for id, workspace, provider, settings in ask(CHANNELS)]
        accounts = {channel.account for channel in channels}
        return History(
            calls=[_call(record) for record in journal.read(file) if record.what != "look-up" and record.account in accounts],
            effects=[_effect(*values) for values in ask(EFFECTS)],
            moves=[Move(*values) for values in ask(MOVES)],
            rows=[_row(*values) for values in ask(ROWS)],
            plans=[Plan(*values) for values in ask(PLANS)],
            channels=channels,
            pauses=[Pause(*values) for values in ask(PAUSES)],
            opt_outs=[OptOut(*values) for values in ask(OPT_OUTS)],
            look_ups=[LookUp(*values) for values in ask(LOOK_UPS)],
            callbacks=[Callback(*values) for values in ask(CALLBACKS)],
            epochs=[Epoch(*values) for values in ask(EPOCHS)],
            entries=[Entry(*values) for values in ask(ENTRIES)],
            samples=list(samples),
            faults=list(faults),
        )


def sample(
    connection: psycopg.Connection[Any], at: float, workspaces: list[int], shown: dict[int, dict[str, int]], queued: int = 0
) -> Sample:
    """One look at the ledger as it is now."""
    [(double,)] = connection.execute(DOUBLE).fetchall()
    return Sample(at, double, dict(connection.execute(STATES, (workspaces,)).fetchall()), shown, queued)


def leaks_in(logs: Iterable[Path], words: dict[str, str]) -> list[tuple[str, str]]:
    """Which of these logs holds which of these words: (log, what kind of thing it is)."""
    found = []
    for log in logs:
        text = log.read_text(errors="replace")
        found += [(log.name, kind) for kind, word in words.items() if word in text]
    return found


def moving(connection: psycopg.Connection[Any], workspaces: list[int]) -> int:
    """How many rows of approved plans a machine has still to do with."""
    [(count,)] = connection.execute(MOVING, (workspaces,)).fetchall()
    return int(count)


def _call(record: journal.Record) -> Call:
    return Call(
        record.at, record.front, record.account, record.target, record.marker, record.filed, record.receipt, record.name,
        tuple(record.keys), record.attempt, record.content, base64.b64decode(record.answer),
    )  # fmt: skip


def _effect(*values: Any) -> Effect:
    *own, kind, raw, at = values
    return Effect(*own, kept=Kept(kind, bytes(raw), at) if kind else None)


def _row(plan: int, position: int, key: str, epoch: int, target: str, digest: str, *content: Any) -> Row:
    subject, text, html, excluded = content
    return Row(plan, position, key, epoch, target, digest, journal.marker_in(text, html), subject, text, html, excluded)


def _account(provider: str, settings: dict[str, Any]) -> str:
    """How the journal names this channel: the `account` in its address, or its sender."""
    return str(settings["from"]) if provider == "smtp" else str(settings["url"]).rpartition("account=")[2].partition("&")[0]
