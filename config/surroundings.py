"""Are PostgreSQL and Redis set up so that what Signoff promises can hold? Half a sentence of what is not, and what to set."""

import redis
from django.conf import settings
from django.db import connection

# A commit that a power cut can take back would let a call be made twice: what was reserved must be on the disk, on the server that decides.
DURABLE = """
    SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', current_setting('synchronous_commit') <> 'off',
           NOT pg_is_in_recovery()
"""
UNSAFE = (
    "PostgreSQL runs with fsync = off, so a crash takes commits back: set it to on",
    "PostgreSQL runs with full_page_writes = off, so a crash may tear pages: set it to on",
    "PostgreSQL runs with synchronous_commit = off, so a crash takes the last commits back: set it to on",
    "this is a replica of the database, which lags behind what was decided: name the primary in DATABASE_URL",
)


def database_fault() -> str:
    """Why this database cannot keep a promise; empty when it can."""
    with connection.cursor() as cursor:
        cursor.execute(DURABLE)
        row = cursor.fetchone()
    return next((fault for holds, fault in zip(row, UNSAFE, strict=True) if not holds), "")


def broker_fault() -> str:
    """Why this Redis loses messages without a word; empty when it refuses what it has no room for. Raises redis.RedisError."""
    with redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
        policy = client.info("memory").get("maxmemory_policy", "noeviction")
    return (
        ""
        if policy == "noeviction"
        else f"Redis throws messages away when it is full ({policy}): set maxmemory-policy to noeviction"
    )
