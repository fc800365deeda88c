"""The two database roles, made on the test database as on any other, and ways to act as one of them."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from config.roles import WEB, WORKER, names_of
from tests.effects.pens import workplace

__all__ = ["workplace"]
PASSWORDS = {WEB: secrets.token_urlsafe(12), WORKER: secrets.token_urlsafe(12)}

type ActingAs = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(scope="session")
def roles(django_db_setup: None, django_db_blocker: Any) -> dict[str, str]:
    """The names of the roles, made by the command that everybody uses. Never on a database that is not the tests' own."""
    assert connection.settings_dict["NAME"].startswith("test_"), "mark these tests with django_db"
    given = {f"SIGNOFF_{role.upper()}_PASSWORD": password for role, password in PASSWORDS.items()}
    with django_db_blocker.unblock(), override_settings(**given):
        call_command("roles", stdout=StringIO())
        connection.close()
    return names_of(connection.settings_dict["NAME"])


@pytest.fixture
def acting_as(roles: dict[str, str], transactional_db: None) -> ActingAs:
    """`with acting_as("web"):` Django, and every pen, is logged in as that role."""

    @contextmanager
    def acting(role: str) -> Iterator[None]:
        owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
        _log_in({"USER": roles[role], "PASSWORD": PASSWORDS[role]})
        try:
            yield
        finally:
            _log_in(owner)

    return acting


def _log_in(who: dict[str, str]) -> None:
    connection.close()
    connection.close_pool()
    connection.settings_dict.update(who)


def logged_in(roles: dict[str, str], role: str) -> psycopg.Connection[Any]:
    """A connection of its own, as this role."""
    parameters = connection.get_connection_params()
    place = {name: parameters[name] for name in ("dbname", "host", "port") if parameters.get(name)}
    return psycopg.connect(**place, user=roles[role], password=PASSWORDS[role], autocommit=True)
