"""A database that keeps its commits for a whole module, and worker processes that look at it."""

import os
from collections.abc import Iterator
from multiprocessing import forkserver
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.db import connection


@pytest.fixture(scope="module")
def committed(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    """The test database, open to every process until the module ends; no message leaves."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        from approvals import tasks
        from tests.crashes import hands

        patch.setattr(tasks.look_at, "delay", lambda chunk_id: None)
        patch.setenv("DATABASE_URL", address())
        forkserver.ensure_running()
        yield
        hands.end_all()
        call_command("flush", verbosity=0, interactive=False)


def address() -> str:
    """The address of the test database."""
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
