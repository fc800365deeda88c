"""What the tests stand on, ready before Django reads its settings: an environment, PostgreSQL, Redis.

A pytest plugin (`-p tests.services`). Whatever the environment names already is left alone; what is missing is
started by `config.embedded` in a folder of its own and ends with the test run. Under pytest-xdist only the first
process starts servers: its workers inherit the addresses.
"""

import base64
import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

from config import embedded

_started: list[tuple[embedded.Services, str]] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Name everything that the settings require; start the servers that nobody named."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # many processes start: each would compile everything anew
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("DEBUG", "1")
    os.environ.setdefault("ALLOWED_HOSTS", "localhost,127.0.0.1")
    os.environ.setdefault("SECRET_KEY", secrets.token_hex(32))
    os.environ.setdefault("SIGNOFF_ENCRYPTION_KEYS", base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    os.environ.setdefault("PGOPTIONS", "-c signoff.may_truncate=on")  # between tests the tables are emptied
    postgres, valkey = not os.environ.get("DATABASE_URL"), not os.environ.get("REDIS_URL")
    if postgres or valkey:
        _start(postgres=postgres, valkey=valkey)


def _start(*, postgres: bool, valkey: bool) -> None:
    folder = tempfile.mkdtemp(prefix="signoff-tests-")
    os.chmod(folder, 0o755)  # the servers' own account must be able to enter
    services = embedded.start(folder, postgres=postgres, valkey=valkey, say=lambda line: None)
    _started.append((services, folder))
    if postgres:
        os.environ["DATABASE_URL"] = services.database_url
    if valkey:
        os.environ["REDIS_URL"] = services.redis_url


def pytest_unconfigure() -> None:
    """End the servers of this run and remove their folder."""
    while _started:
        services, folder = _started.pop()
        services.stop()
        for place in {services.data_dir, Path(folder)}:  # not always the same: see `embedded.Home.open`
            shutil.rmtree(place, ignore_errors=True)
