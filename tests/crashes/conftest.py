"""A database that keeps its commits for a whole module, and worker processes that look at it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.db import connection

from config.stack import Stack
from tests.crashes.processes import speak_to
from tests.crashes.story import Journal
from tests.fakes import FakeHttp


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


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """Worker and beat of the test database, with a broker of their own; the test process speaks to the same broker."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-test-", dir="/var/tmp"))
    folder.chmod(0o711)
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"} | {"DATABASE_URL": address()}
    with Stack(folder, environment=environment, say=lambda line: None) as made:
        made.services()
        made.commands |= {
            "worker": "celery -A tests.crashes.hasty worker --loglevel INFO --concurrency 2 --without-mingle --without-gossip",
            "beat": f"celery -A tests.crashes.hasty beat --loglevel INFO --pidfile= --schedule {folder}/schedule",
        }
        speak_to(made.environment["REDIS_URL"], monkeypatch)
        yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def provider() -> Iterator[FakeHttp]:
    with FakeHttp() as http:
        yield http


@pytest.fixture
def journal(provider: FakeHttp) -> Iterator[Journal]:
    book = Journal(provider)
    yield book
    book.close()
