"""Servers that forget are refused in production, in one sentence that says what to set; readiness says the same."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.conf import settings as project
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client

from config import standing, surroundings

pytestmark = pytest.mark.django_db


@pytest.fixture
def forgetful_broker() -> Iterator[None]:
    """The tests' own Redis, set to throw away what it has no room for; it has room."""
    with redis.from_url(project.REDIS_URL) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        yield
        client.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize("broken", range(4))
def test_a_database_that_takes_commits_back_is_named(broken: int, monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    assert surroundings.database_fault() == ""
    answers = ", ".join("false" if n == broken else "true" for n in range(4))
    monkeypatch.setattr(surroundings, "DURABLE", f"SELECT {answers}")
    assert surroundings.database_fault() == surroundings.UNSAFE[broken]
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, surroundings.UNSAFE[broken])


def test_commits_that_do_not_wait_for_the_disk_are_seen() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    assert "synchronous_commit = off" in surroundings.database_fault()


def test_a_broker_that_throws_messages_away_is_named(forgetful_broker: None, client: Client) -> None:
    assert surroundings.broker_fault().endswith("(allkeys-lru): set maxmemory-policy to noeviction")
    assert client.get("/readyz").json()["broker"] == surroundings.broker_fault()


@pytest.mark.parametrize("start", [standing.web_starts, standing.worker_starts])
def test_in_production_nobody_starts_with_it(start: Any, forgetful_broker: None, settings: Any) -> None:
    settings.SIGNOFF_OWNER_MAY_SERVE = False
    with pytest.raises((ImproperlyConfigured, SystemExit), match="set maxmemory-policy to noeviction"):
        start()


def test_a_broker_that_is_away_stops_nobody(settings: Any) -> None:
    settings.SIGNOFF_OWNER_MAY_SERVE, settings.REDIS_URL = False, "redis://127.0.0.1:9"
    standing.refuse_forgetful_broker()
