"""May this process start? In production web and worker refuse a role that could undo the database's rules, and servers that forget."""

import logging
import sys
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from config.roles import WEB, WORKER
from config.surroundings import broker_fault, database_fault
from effects.statements import read_statements

SQL = read_statements(Path(__file__).parent / "sql" / "standing.sql")
ADVICE = "Run `manage.py roles` as the owner of the tables, and give each process the DATABASE_URL of its own role."

log = logging.getLogger(__name__)


def excess(role: str) -> str:
    """What the role of this process may do that WEB or WORKER must not, as half a sentence; empty when all is well."""
    with connection.cursor() as cursor:
        cursor.execute(SQL["powers"])
        name, superuser, bypasses, makes_roles, owns, decides, reserves = cursor.fetchone()
    powers = (
        (superuser, "is a superuser"),
        (bypasses, "may bypass row security"),
        (owns, "owns tables, or is a member of the role that does"),
        (makes_roles, "may create roles"),
        (role == WORKER and decides, "may approve plans, which is for the web process alone"),
        (role == WEB and reserves, "may reserve effects, which is for workers alone"),
    )
    return next((f"the database role {name} {power}" for has, power in powers if has), "")


def refuse_excess(role: str) -> None:
    """Raise ImproperlyConfigured, now or at the first connection of this process, when its role may do more than it must."""
    if settings.SIGNOFF_OWNER_MAY_SERVE:
        return
    connection_created.connect(_Guard(role), weak=False, dispatch_uid="standing")
    try:
        connection.ensure_connection()
    finally:
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # a fork must not inherit it


class _Guard:
    """Looks at the first connection that opens. While it is refused, so is every next one."""

    def __init__(self, role: str) -> None:
        self._role, self._trusted = role, False

    def __call__(self, **_: Any) -> None:
        if self._trusted:
            return
        too_much = excess(self._role)
        if fault := f"{too_much}. {ADVICE}" if too_much else database_fault():
            connection.close()
            raise ImproperlyConfigured(f"{fault[0].upper()}{fault[1:]}")
        self._trusted = True


def refuse_forgetful_broker() -> None:
    """Raise ImproperlyConfigured when Redis may throw messages away. One that is away loses nothing: readiness looks again."""
    if settings.SIGNOFF_OWNER_MAY_SERVE:
        return
    try:
        fault = broker_fault()
    except redis.RedisError:
        return
    if fault:
        raise ImproperlyConfigured(fault)


def web_starts() -> None:
    """For the web process: it serves without its database (readiness says so), and looks as soon as that is back."""
    refuse_forgetful_broker()
    try:
        refuse_excess(WEB)
    except OperationalError:
        log.warning("PostgreSQL is not reachable; its role is looked at as soon as it is")


def worker_starts() -> None:
    """For worker and beat: they end with one sentence, since without their database there is nothing they could do."""
    try:
        refuse_forgetful_broker()
        refuse_excess(WORKER)
    except ImproperlyConfigured as refusal:
        sys.exit(str(refusal))
    except OperationalError as error:
        sys.exit(f"PostgreSQL is not reachable: {str(error).strip()}")
