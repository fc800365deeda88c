"""Is the web process alive, and is everything it leans on ready?"""

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from config.roles import WEB
from config.standing import excess
from config.surroundings import broker_fault, database_fault

# Every trigger of the SQL files with rules.
GUARDS = (
    "effect_is_born_pending",
    "effects_belong_to_their_channel",
    "effect_follows_the_arrows",
    "human_pen_only_rules",
    "machine_pen_never_rules",
    "channel_stays_where_it_is",
    "effect_keeps_its_identity",
    "final_effect_never_changes",
    "effect_leaves_a_trail",
    "epoch_supersedes_a_done_effect",
    "effect_is_never_deleted",
    "channel_is_never_deleted",
    "reply_is_written_once",
    "event_is_written_once",
    "look_up_is_written_once",
    "epoch_is_written_once",
    "effects_are_never_truncated",
    "replies_are_never_truncated",
    "events_are_never_truncated",
    "look_ups_are_never_truncated",
    "epochs_are_never_truncated",
    "challenge_is_answered_once",
    "challenge_is_never_deleted",
    "challenges_are_never_truncated",
    "callback_speaks_of_its_channel",
    "callback_stays_as_received",
    "callback_is_applied_once",
    "callback_is_seen_once",
    "callback_is_never_deleted",
    "callbacks_are_never_truncated",
    "plan_follows_its_arrows",
    "machine_only_expires_plans",
    "approval_rests_on_a_decision",
    "approval_keeps_its_end",
    "row_stays_as_proposed",
    "rows_come_into_a_draft",
    "decision_has_four_eyes",
    "plans_are_never_truncated",
    "rows_are_never_truncated",
    "decisions_are_never_truncated",
    "opt_out_is_only_lifted",
    "opt_out_is_never_deleted",
    "opt_outs_are_never_truncated",
    "entry_is_written_once",
    "entries_are_never_truncated",
)


def alive(request: HttpRequest) -> HttpResponse:
    """200 as soon as the process serves."""
    return HttpResponse("ok", content_type="text/plain")


def ready(request: HttpRequest) -> JsonResponse:
    """200 when all is ready; else 503. The body says of each part `ready` or what is wrong, without particulars."""
    parts = {"database": _database(), "broker": _broker()}
    if parts["database"] == "ready":
        parts |= {"migrations": _migrations(), "guards": _guards()}
    return JsonResponse(parts, status=200 if set(parts.values()) == {"ready"} else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return database_fault() or "ready"
    except DatabaseError:
        return "not reachable"


def _broker() -> str:
    try:
        return broker_fault() or "ready"
    except redis.RedisError:
        return "not reachable"


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(missing)} not applied" if missing else "ready"


def _guards() -> str:
    """The triggers that keep the rules must be there and switched on, and our own role unable to undo them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'")
        missing = sorted(set(GUARDS) - {name for (name,) in cursor.fetchall()})
    if missing:
        return f"missing: {', '.join(missing)}"
    if not settings.SIGNOFF_OWNER_MAY_SERVE and (too_much := excess(WEB)):
        return too_much
    return "ready"
