"""Is the web process alive, and is everything it leans on ready?"""

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

GUARDS = (
    "effect_is_born_pending",
    "effect_follows_the_arrows",
    "effect_keeps_its_identity",
    "final_effect_never_changes",
    "effect_leaves_a_trail",
    "effect_is_never_deleted",
    "entry_is_written_once",
    "plan_follows_its_arrows",
    "row_stays_as_proposed",
    "decision_has_four_eyes",
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
    except DatabaseError:
        return "not reachable"
    return "ready"


def _broker() -> str:
    try:
        with redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            client.ping()
    except redis.RedisError:
        return "not reachable"
    return "ready"


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(missing)} not applied" if missing else "ready"


def _guards() -> str:
    """The triggers that keep the rules must be there and switched on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'")
        missing = sorted(set(GUARDS) - {name for (name,) in cursor.fetchall()})
    return f"missing: {', '.join(missing)}" if missing else "ready"
