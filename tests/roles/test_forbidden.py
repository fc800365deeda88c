"""What neither role, not the worker and not the web may do: each forbidden statement, tried as the role itself."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from psycopg import errors

from approvals import opting_out, voting
from approvals.models import OptOut
from audit.models import Entry
from config.roles import WEB, WORKER
from effects import rulings
from effects.models import Callback, Effect, KeptReply, LookUp, Pause
from effects.states import State
from tests import world
from tests.callers import kept
from tests.roles.conftest import logged_in

pytestmark = pytest.mark.django_db
LEDGER = (
    "effects_effect",
    "effects_keptreply",
    "effects_challenge",
    "effects_event",
    "effects_lookup",
    "effects_epoch",
    "effects_channel",
    "effects_pause",
    "effects_callback",
)
PLANS = ("approvals_plan", "approvals_row", "approvals_decision", "approvals_chunk", "approvals_optout")
GUARDED = (*LEDGER, *PLANS, "audit_entry")
DENIED = "permission denied"
LEFT, RULED, DECIDED = "left to the machine", "for a person to rule", "for people to decide"
NEW_EFFECT = (
    "(workspace_id, channel_id, key, epoch, attempt, state, tool, target, event_id, scope, content_digest, run_id, worker, deadline,"
    " receipt, reason, evidence, settled_by) SELECT workspace_id, channel_id, 'v1:new', {0}, 1, '{1}', tool, target, event_id, scope,"
    " content_digest, run_id, 'w', now() + interval '1 minute', '', '', '{2}', '' FROM effects_effect WHERE id = {{done}}"
)
NEW_DECISION = (
    "INSERT INTO approvals_decision (plan_id, kind, by_id, digest, reason, rule)"
    " VALUES ({proposed}, 'approved', {alice}, 'sha256:0', '', '{}')"
)
NEW_EPOCH = (
    "INSERT INTO effects_epoch (workspace_id, key, epoch, supersedes_id, opened_by_id, reason)"
    " SELECT workspace_id, key, 1, id, {alice}, 'once more' FROM effects_effect WHERE id = {done}"
)
NEW_CALLBACK = (
    "INSERT INTO effects_callback (workspace_id, channel_id, event_id, effect_id, kind, exact, receipt, reason, raw)"
    " SELECT workspace_id, {0}, 'new', id, 'bounced', true, '', '', '' FROM effects_effect WHERE id = {{done}}"
)
SETTLED = "settled_at = now(), settled_by = 'x'"

# (what is tried, the statement, what PostgreSQL says)
BOTH = [
    *((f"delete from {table}", f"DELETE FROM {table}", DENIED) for table in GUARDED),
    *((f"truncate {table}", f"TRUNCATE {table} CASCADE", DENIED) for table in GUARDED),
    *((f"switch off the triggers of {table}", f"ALTER TABLE {table} DISABLE TRIGGER ALL", "must be owner") for table in GUARDED),
    *((f"drop {table}", f"DROP TABLE {table} CASCADE", "must be owner") for table in GUARDED),
    ("drop a trigger", "DROP TRIGGER effect_follows_the_arrows ON effects_effect", "must be owner"),
    ("replace a trigger", "CREATE OR REPLACE TRIGGER effect_follows_the_arrows BEFORE UPDATE ON effects_effect"
     " FOR EACH ROW EXECUTE FUNCTION refuse('x')", DENIED),
    ("replace a guard's function", "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
     " AS 'BEGIN RETURN NEW; END'", DENIED),
    ("drop a guard's function", "DROP FUNCTION refuse() CASCADE", "must be owner"),
    ("drop the index that lets one effect live", "DROP INDEX one_live_effect_per_key_and_epoch", "must be owner"),
    ("drop a constraint", "ALTER TABLE effects_effect DROP CONSTRAINT state_is_one_of_six", "must be owner"),
    ("play a replica, for which triggers sleep", "SET session_replication_role = replica", DENIED),
    ("become the owner", "SET ROLE {owner}", DENIED),
    ("become the owner for good", "SET SESSION AUTHORIZATION {owner}", DENIED),
    ("give itself the owner's rights", "GRANT {owner} TO CURRENT_USER", "permission denied|does not have"),
    ("give itself rights", "GRANT DELETE ON audit_entry TO CURRENT_USER; DELETE FROM audit_entry", DENIED),
    ("own a table", "ALTER TABLE effects_effect OWNER TO CURRENT_USER", "must be owner"),
    ("make a role", "CREATE ROLE helper", DENIED),
    ("make a table", "CREATE TABLE effects_other (id int)", DENIED),
    ("make a temporary table before one of ours", "CREATE TEMPORARY TABLE effects_epoch (key text, epoch int)", DENIED),
    ("make a schema before ours", "CREATE SCHEMA before_ours", DENIED),
    ("make a function", "CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT ''-infinity''::timestamptz'", DENIED),
    ("write to the trail", "INSERT INTO effects_event (effect_id, before, after, by, reason, evidence)"
     " VALUES ({done}, 'unknown', 'done', 'x', '', '')", DENIED),
    *((f"change {column} of a frozen row", f"UPDATE approvals_row SET {column} = DEFAULT WHERE plan_id = {{approved}}", DENIED)
      for column in ("target", "key", "subject", "text", "html", "payload", "amount_minor", "content_digest", "plan_id", "position")),
    *((f"change {column} of a plan", f"UPDATE approvals_plan SET {column} = DEFAULT WHERE id = {{approved}}", DENIED)
      for column in ("title", "rationale", "channel_id", "tool", "event_id", "scope", "author_id", "version", "token_id")),
    *((f"change {column} of an effect", f"UPDATE effects_effect SET {column} = DEFAULT WHERE id = {{unknown}}", DENIED)
      for column in ("key", "epoch", "attempt", "target", "content_digest", "plan_id", "worker", "deadline", "reserved_at")),
    ("change a decision", "UPDATE approvals_decision SET reason = 'other'", DENIED),
    ("change the record", "UPDATE audit_entry SET actor_name = 'nobody'", DENIED),
    ("change a kept reply", "UPDATE effects_keptreply SET raw = ''", DENIED),
    ("change a look-up", "UPDATE effects_lookup SET answer = 'found'", DENIED),
    ("change the trail", "UPDATE effects_event SET by = 'nobody'", DENIED),
    ("change an epoch", "UPDATE effects_epoch SET reason = 'other'", DENIED),
    ("change a pause", "UPDATE effects_pause SET reason = 'other'", DENIED),
    *((f"change {column} of a callback", f"UPDATE effects_callback SET {column} = DEFAULT WHERE id = {{news}}", DENIED)
      for column in ("event_id", "effect_id", "channel_id", "kind", "exact", "receipt", "reason", "said_at", "raw", "received_at")),
    ("keep a callback about an effect of another channel", NEW_CALLBACK.format("channel_id + 1"), DENIED + "|its own channel"),
    ("point a channel elsewhere", "UPDATE effects_channel SET settings = '{}'", DENIED),
    ("add a channel", "INSERT INTO effects_channel (workspace_id, slug, provider, settings, secrets)"
     " VALUES (1, 'x', 'http', '{}', '')", DENIED),
    ("move a done effect", "UPDATE effects_effect SET state = 'failed' WHERE id = {done}", "never changes again"),
    ("change what is done", "UPDATE effects_effect SET receipt = 'other' WHERE id = {done}", "never changes again"),
    ("add a person", "INSERT INTO accounts_user (email, password, name) VALUES ('x@example.com', '', '')", DENIED),
    ("take a role in a workspace", "UPDATE accounts_membership SET role = 'admin'", DENIED),
    ("issue a token", "INSERT INTO accounts_token (workspace_id, name, owner_id, digest, prefix) VALUES (1, 'x', 1, 'x', 'x')", DENIED),
]  # fmt: skip

WORKERS = [
    ("approve a plan", "UPDATE approvals_plan SET state = 'approved' WHERE id = {proposed}", f"{DECIDED}|{DENIED}"),
    ("approve a plan that is overdue", "UPDATE approvals_plan SET state = 'approved' WHERE id = {overdue}", f"{DECIDED}|{DENIED}"),
    ("propose a draft", "UPDATE approvals_plan SET state = 'proposed' WHERE id = {draft}", DENIED + "|for people to decide"),
    ("stop a plan", "UPDATE approvals_plan SET state = 'stopped' WHERE id = {approved}", DECIDED),
    ("close a plan before its time", "UPDATE approvals_plan SET state = 'expired' WHERE id = {proposed}", DECIDED),
    ("say that a plan was decided on later", "UPDATE approvals_plan SET decided_at = now() WHERE id = {approved}", DECIDED),
    ("give a plan more time", "UPDATE approvals_plan SET expires_at = now() + interval '1 day'", DENIED),
    ("change a digest", "UPDATE approvals_plan SET digest = 'sha256:1' WHERE id = {proposed}", DENIED),
    ("write a decision", NEW_DECISION, DENIED),
    ("read decisions", "SELECT * FROM approvals_decision", DENIED),
    ("add a row", "INSERT INTO approvals_row (plan_id, position) VALUES ({draft}, 99)", DENIED),
    ("leave a row out", "UPDATE approvals_row SET excluded_reason = 'x' WHERE plan_id = {proposed}", DENIED),
    ("opt somebody out", "INSERT INTO approvals_optout (workspace_id, target, reason, by, lifted_by) VALUES (1, 'x', 'x', 'x', '')",
     DENIED),
    ("lift an opt-out", "UPDATE approvals_optout SET lifted_at = now(), lifted_by = 'x'", DENIED),
    ("add a chunk", "INSERT INTO approvals_chunk (plan_id, lo, hi, leased_by) VALUES ({approved}, 900, 901, '')", DENIED),
    ("move a chunk's bounds", "UPDATE approvals_chunk SET hi = hi + 500", DENIED),
    ("open an epoch", NEW_EPOCH, DENIED),
    ("supersede a done effect", "UPDATE effects_effect SET superseded_by_id = 1 WHERE id = {done}", DENIED),
    ("reserve in an epoch that nobody opened", "INSERT INTO effects_effect " + NEW_EFFECT.format(1, "pending", ""), "nobody opened epoch"),
    ("make an effect that is done", "INSERT INTO effects_effect " + NEW_EFFECT.format(0, "done", ""), "born pending"),
    ("make an effect with evidence", "INSERT INTO effects_effect " + NEW_EFFECT.format(0, "pending", "saw it"), "without evidence"),
    ("make an effect that a person settled", "INSERT INTO effects_effect (ruled) VALUES (true)", DENIED),
    ("mark a ruling", "UPDATE effects_effect SET ruled = true WHERE id = {unknown}", DENIED),
    ("write evidence", "UPDATE effects_effect SET evidence = 'saw it' WHERE id = {unknown}", DENIED),
    ("say that an unknown effect did not happen (g)", f"UPDATE effects_effect SET state = 'failed', {SETTLED} WHERE id = {{unknown}}",
     RULED),
    ("revoke an unknown effect (i)", f"UPDATE effects_effect SET state = 'revoked', {SETTLED} WHERE id = {{unknown}}", RULED),
    ("revoke a stranded effect (j)", f"UPDATE effects_effect SET state = 'revoked', {SETTLED} WHERE id = {{stranded}}", RULED),
    ("revoke an effect that a person called stranded (j)",
     f"UPDATE effects_effect SET state = 'revoked', {SETTLED} WHERE id = {{ruled_stranded}}", RULED),
    ("revoke a pending effect", f"UPDATE effects_effect SET state = 'revoked', {SETTLED} WHERE id = {{pending}}", "no arrow"),
    ("keep a callback", NEW_CALLBACK.format("channel_id"), DENIED),
    ("say that a person saw late news", "UPDATE effects_callback SET seen_by = 'x', seen_at = now(), seen_reason = 'x' WHERE id = {news}",
     DENIED),
    ("apply a callback twice", "UPDATE effects_callback SET outcome = 'agreed' WHERE id = {news}", "was applied already"),
    ("take late news back", "UPDATE effects_callback SET outcome = '', applied_at = NULL, due_at = now() WHERE id = {news}",
     "was applied already"),
    ("apply a callback without saying when", "UPDATE effects_callback SET outcome = 'agreed' WHERE id = {waiting}", "applied_exactly"),
    ("forget a callback", "UPDATE effects_callback SET due_at = NULL WHERE id = {waiting}", "applied_exactly"),
    ("lift a pause", "UPDATE effects_pause SET lifted_at = now(), lifted_by = 'x'", DENIED),
    ("shorten a pause", "UPDATE effects_pause SET until = now()", DENIED),
    ("read the record", "SELECT act, reason FROM audit_entry", DENIED),
    ("read passwords", "SELECT password FROM accounts_user", DENIED),
    ("read sessions", "SELECT * FROM django_session", DENIED),
    ("read tokens", "SELECT digest FROM accounts_token", DENIED),
    ("write to a run", "UPDATE runs_run SET state = 'finished'", DENIED),
]  # fmt: skip

WEBS = [
    ("call a pending effect done (b)", f"UPDATE effects_effect SET state = 'done', receipt = 'r', {SETTLED} WHERE id = {{pending}}", LEFT),
    ("rule on a pending effect", f"UPDATE effects_effect SET state = 'done', receipt = 'r', evidence = 'e', ruled = true, {SETTLED}"
     " WHERE id = {pending}", LEFT),
    *((f"call a pending effect {state}", f"UPDATE effects_effect SET state = '{state}', ruled = true, {SETTLED} WHERE id = {{pending}}",
       LEFT) for state in ("failed", "unknown", "stranded")),
    ("put off the sweeper", "UPDATE effects_effect SET look_up_at = now() + interval '1 year' WHERE id = {pending}", LEFT),
    ("call an unknown effect done without evidence", f"UPDATE effects_effect SET state = 'done', receipt = 'r', ruled = true, {SETTLED}"
     " WHERE id = {unknown}", LEFT),
    ("call an unknown effect done as a machine would (f)",
     f"UPDATE effects_effect SET state = 'done', receipt = 'r', evidence = 'e', {SETTLED}"
     " WHERE id = {unknown}", LEFT),
    ("settle an unknown effect without a ruling", f"UPDATE effects_effect SET state = 'failed', {SETTLED} WHERE id = {{unknown}}",
     LEFT),
    ("write beside an unknown effect", "UPDATE effects_effect SET reason = 'other', ruled = true WHERE id = {unknown}", LEFT),
    ("call a stranded effect done", f"UPDATE effects_effect SET state = 'done', receipt = 'r', evidence = 'e', ruled = true, {SETTLED}"
     " WHERE id = {stranded}", "no arrow"),
    ("make an effect", "INSERT INTO effects_effect " + NEW_EFFECT.format(0, "pending", ""), DENIED),
    ("make a kept reply", "INSERT INTO effects_keptreply (effect_id, kind, raw, note) VALUES ({pending}, 'answered', '', '')", DENIED),
    ("say what a callback came to", "UPDATE effects_callback SET outcome = 'agreed', applied_at = now(), due_at = NULL"
     " WHERE id = {waiting}", DENIED),
    ("put off a callback", "UPDATE effects_callback SET due_at = now() + interval '1 year' WHERE id = {waiting}", DENIED),
    ("backdate a callback", "INSERT INTO effects_callback (received_at) VALUES (now() - interval '1 day')", DENIED),
    ("keep a callback as applied", "INSERT INTO effects_callback (outcome, applied_at) VALUES ('settled', now())", DENIED),
    ("see what is no news", "UPDATE effects_callback SET seen_by = 'x', seen_at = now(), seen_reason = 'x' WHERE id = {waiting}",
     "only_news_is_seen"),
    ("see late news without a reason", "UPDATE effects_callback SET seen_by = 'x', seen_at = now() WHERE id = {news}",
     "only_news_is_seen"),
    ("see late news twice", "UPDATE effects_callback SET seen_reason = 'other' WHERE id = {seen}", "was seen already"),
    ("see late news no more", "UPDATE effects_callback SET seen_by = '', seen_at = NULL, seen_reason = '' WHERE id = {seen}",
     "was seen already"),
    ("take a channel's slots", "UPDATE effects_channel SET next_slot = now()", DENIED),
    ("supersede what is not done", "INSERT INTO effects_epoch (workspace_id, key, epoch, supersedes_id, opened_by_id, reason)"
     " SELECT workspace_id, key, 1, id, {alice}, 'x' FROM effects_effect WHERE id = {unknown}", "supersedes no done effect"),
    ("approve Bob's plan as Bob", "INSERT INTO approvals_decision (plan_id, kind, by_id, digest, reason, rule)"
     " VALUES ({proposed}, 'approved', {bob}, 'sha256:0', '', '{}')", "their own work"),
    ("leave a row out after approval", "UPDATE approvals_row SET excluded_reason = 'x' WHERE plan_id = {approved}", "is frozen"),
    ("bring a row back", "UPDATE approvals_row SET excluded_reason = '' WHERE plan_id = {proposed} AND position = 1", "is frozen"),
    ("change the epoch of a row that was proposed", "UPDATE approvals_row SET epoch = 1 WHERE plan_id = {proposed}", "is frozen"),
    ("add a row to a proposed plan", "INSERT INTO approvals_row (plan_id, position, target_typed, target, key, epoch, subject, text, html,"
     " content_digest, excluded_reason) VALUES ({proposed}, 99, 'x', 'x', 'x', 0, '', '', '', '', '')", "to a draft only"),
    ("change the digest after approval", "UPDATE approvals_plan SET digest = 'sha256:1' WHERE id = {approved}", "is frozen"),
    ("hide checks of a proposed plan", "UPDATE approvals_plan SET checks = '[]', row_count = 1 WHERE id = {proposed}", "never changes"),
    ("approve a draft", "UPDATE approvals_plan SET state = 'approved' WHERE id = {draft}", "nobody decided"),
    ("approve a plan that nobody decided on", "UPDATE approvals_plan SET state = 'approved' WHERE id = {proposed}", "nobody decided"),
    ("approve a plan as it was not decided on", NEW_DECISION + "; UPDATE approvals_plan SET state = 'approved' WHERE id = {proposed}",
     "nobody decided"),
    ("give an approval more time", "UPDATE approvals_plan SET expires_at = expires_at + interval '1 hour' WHERE id = {approved}",
     "keeps its end"),
    ("give an approval no end", "UPDATE approvals_plan SET expires_at = NULL WHERE id = {approved}", "keeps its end"),
    ("say that somebody else opted out", "UPDATE approvals_optout SET target = 'x'", DENIED),
    ("lift an opt-out twice", "UPDATE approvals_optout SET lifted_at = now(), lifted_by = 'x' WHERE id = {lifted}", "lifted once"),
    ("put an opt-out in force again", "UPDATE approvals_optout SET lifted_at = NULL, lifted_by = '' WHERE id = {lifted}", "lifted once"),
    ("lift an opt-out without a name", "UPDATE approvals_optout SET lifted_at = now() WHERE id = {opted_out}", "lifted once"),
    ("start a stopped plan again", "UPDATE approvals_plan SET state = 'approved' WHERE id = {stopped}", "never goes from"),
    ("move a chunk's bounds", "UPDATE approvals_chunk SET hi = hi + 500", DENIED),
    ("take a chunk", "UPDATE approvals_chunk SET leased_by = 'web'", DENIED),
    ("backdate a pause", "UPDATE effects_pause SET started_at = now()", DENIED),
    ("change an answer that was given", "UPDATE runs_answer SET status = 200", DENIED),
    ("delete a run", "DELETE FROM runs_run", DENIED),
]  # fmt: skip

TRIALS = [(role, *trial) for role in (WEB, WORKER) for trial in BOTH]
TRIALS += [(WORKER, *trial) for trial in WORKERS] + [(WEB, *trial) for trial in WEBS]


@pytest.fixture(scope="module")
def things(roles: dict[str, str], django_db_blocker: Any) -> Iterator[dict[str, Any]]:
    """Something of everything, committed; emptied afterwards."""
    with django_db_blocker.unblock():
        yield _things()
        call_command("flush", interactive=False, verbosity=0)


def _things() -> dict[str, Any]:
    alice, dana = world.alice(), world.acting(world.dana())
    approved, stopped, proposed, overdue = (world.a_proposed_plan(2, event_id=name) for name in ("sale", "end", "autumn", "late"))
    for plan in (approved, stopped):
        voting.approve(plan, by=world.acting(alice), digest=plan.digest)
    type(stopped).objects.filter(pk=stopped.pk).update(state="stopped")
    type(overdue).objects.filter(pk=overdue.pk).update(expires_at=timezone.now())
    voting.exclude(proposed, by=world.acting(alice), positions=[1], reason="left us")
    effects = {state.value: world.an_effect(state, target=f"{state}@example.com").pk for state in State if state != State.REVOKED}
    thing = world.an_effect("unknown", target="thing@example.com")
    rulings.resolve(thing, to=State.STRANDED, by=dana, reason="stuck", evidence="", seen="unknown")
    superseded = world.an_effect("done", target="again@example.com")
    rulings.open_epoch(superseded, by=dana, reason="moved house", seen_epoch=0)
    KeptReply.objects.create(effect=superseded, kind="answered", raw=b"HTTP/1.1 200 OK")
    LookUp.objects.create(effect=superseded, by="a test", answer="absent")
    Pause.objects.create(workspace=world.a_workspace(), subject="channel:1", reason="rests", started_by="a test")
    opting_out.opt_out(world.a_workspace(), ["gone@example.com", "back@example.com"], by=dana, reason="wrote to us")
    opted_out, lifted = OptOut.objects.order_by("id")
    opting_out.lift(lifted, by=dana, reason="wrote again")
    late = _callbacks(superseded, Effect.objects.get(pk=effects["unknown"]))
    assert Entry.objects.exists()
    plans = {"approved": approved.pk, "stopped": stopped.pk, "proposed": proposed.pk, "overdue": overdue.pk}
    plans |= {"draft": world.a_draft(1, event_id="draft").pk}
    people = {"alice": alice.pk, "bob": world.bob().pk, "owner": f'"{connection.settings_dict["USER"]}"'}
    return plans | effects | late | {"ruled_stranded": thing.pk, "opted_out": opted_out.pk, "lifted": lifted.pk} | people


def _callbacks(done: Effect, unknown: Effect) -> dict[str, Any]:
    waiting, news, seen = kept(unknown, "bounced"), kept(done, "bounced"), kept(done, "rejected")
    Callback.objects.filter(effect=done).update(outcome="contrary", applied_at=timezone.now(), due_at=None)
    Callback.objects.filter(pk=seen.pk).update(seen_by="Dana", seen_at=timezone.now(), seen_reason="called them")
    return {"waiting": waiting.pk, "news": news.pk, "seen": seen.pk}


@pytest.mark.parametrize(("role", "act", "statement", "said"), TRIALS, ids=[f"{role}: {act}" for role, act, *_ in TRIALS])
def test_the_database_refuses(
    role: str, act: str, statement: str, said: str, roles: dict[str, str], things: dict[str, Any]
) -> None:
    asked = re.sub(r"\{(\w+)\}", lambda name: str(things[name[1]]), statement)
    with logged_in(roles, role) as session, session.transaction(force_rollback=True):
        with pytest.raises(psycopg.Error, match=said) as refused, session.transaction():
            session.execute(asked)
        expected = (errors.InsufficientPrivilege, errors.CheckViolation)
        assert isinstance(refused.value, expected), f"{type(refused.value).__name__}: {refused.value}"


def test_a_worker_closes_a_plan_that_is_overdue(roles: dict[str, str], things: dict[str, Any]) -> None:
    """The one thing that it does to a plan; so the refusals above are not those of a role that can do nothing."""
    with logged_in(roles, WORKER) as session, session.transaction(force_rollback=True):
        closed = session.execute("UPDATE approvals_plan SET state = 'expired' WHERE id = %s", [things["overdue"]])
        assert closed.rowcount == 1


def test_the_owner_is_told_before_a_ledger_plan_or_audit_table_is_emptied(things: dict[str, Any], django_db_blocker: Any) -> None:
    parameters = connection.get_connection_params()
    place = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}
    with psycopg.connect(**place, options="-c signoff.may_truncate=off") as session:
        for table in set(GUARDED) - {"effects_channel", "effects_pause", "approvals_chunk"}:
            with pytest.raises(errors.CheckViolation, match=r"truncated|never changed"), session.transaction():
                session.execute(f"TRUNCATE {table} CASCADE")
    assert Effect.objects.exists()
