"""In production web, worker and beat refuse to start under a role that could undo the rules of the database; under their own they start."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client

from config.roles import WEB, WORKER
from tests.roles.conftest import PASSWORDS, ActingAs

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "web": ["-c", "import config.wsgi; print('it serves')"],
    "worker": ["-m", "celery", "-A", "config", "worker", "--pool", "solo"],
    "beat": ["-m", "celery", "-A", "config", "beat", "--pidfile=", "--schedule", f"{tempfile.mkdtemp()}/beat"],
}


def address(user: str, password: str) -> str:
    place = connection.settings_dict
    return f"postgresql://{quote(user, safe='')}:{quote(password, safe='')}@{place['HOST']}:{place['PORT']}/{place['NAME']}"


def start(*program: str, url: str, debug: str = "0") -> tuple[int, str]:
    """The exit code and the words of a process in production."""
    given = os.environ | {"DATABASE_URL": url, "DEBUG": debug, "ALLOWED_HOSTS": "localhost"}
    done = subprocess.run(
        [sys.executable, *program], cwd=ROOT, env=given, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize("process", list(PROGRAMS))
def test_the_owner_is_refused_and_told_what_to_run(process: str, roles: dict[str, str], tmp_path: Path) -> None:
    place = connection.settings_dict
    schedule = ["--schedule", str(tmp_path / "schedule")] if process == "beat" else []  # beat replaces a file it cannot read
    code, said = start(*PROGRAMS[process], *schedule, url=address(place["USER"], place["PASSWORD"]))
    assert code != 0
    assert f"The database role {place['USER']} " in said
    assert "Run `manage.py roles` as the owner of the tables" in said


@pytest.mark.parametrize(("process", "role", "power"), [("web", WORKER, "reserve effects"), ("worker", WEB, "approve plans")])
def test_the_role_of_the_other_is_refused(process: str, role: str, power: str, roles: dict[str, str]) -> None:
    code, said = start(*PROGRAMS[process], url=address(roles[role], PASSWORDS[role]))
    assert code != 0
    assert f"The database role {roles[role]} may {power}" in said


@pytest.mark.parametrize(("role", "look"), [(WEB, "web_starts"), (WORKER, "worker_starts")])
def test_their_own_roles_start(role: str, look: str, roles: dict[str, str]) -> None:
    program = f"import django; django.setup(); from config import standing; standing.{look}(); print('it starts')"
    assert start("-c", program, url=address(roles[role], PASSWORDS[role])) == (0, "it starts\n")


def test_on_a_developers_machine_the_owner_may_serve(roles: dict[str, str]) -> None:
    place = connection.settings_dict
    assert start(*PROGRAMS["web"], url=address(place["USER"], place["PASSWORD"]), debug="1") == (0, "it serves\n")


def test_without_its_database_the_web_serves_and_looks_later_and_the_worker_ends() -> None:
    nowhere = "postgresql://x:x@127.0.0.1:9/x"
    code, said = start(*PROGRAMS["web"], url=nowhere)
    assert (code, "it serves" in said, "as soon as it is" in said) == (0, True, True)
    code, said = start("-c", "import django; django.setup(); from config import standing; standing.worker_starts()", url=nowhere)
    assert code == 1
    assert "PostgreSQL is not reachable: " in said


def test_whoever_came_up_without_the_database_is_refused_at_its_first_connection(roles: dict[str, str]) -> None:
    place = connection.settings_dict
    program = (
        "import django; django.setup(); from django.db import connection; from config import standing\n"
        "port, connection.settings_dict['PORT'] = connection.settings_dict['PORT'], '9'\n"
        "standing.web_starts()\n"
        "connection.settings_dict['PORT'] = port\n"
        "for _ in range(2):\n"
        "    try: connection.ensure_connection(); print('let in')\n"
        "    except django.core.exceptions.ImproperlyConfigured as refusal: print('refused')\n"
    )
    code, said = start("-c", program, url=address(place["USER"], place["PASSWORD"]))
    assert (code, said.splitlines()[-2:]) == (0, ["refused", "refused"]), said


@pytest.fixture
def in_production(settings: Any) -> None:
    settings.SIGNOFF_OWNER_MAY_SERVE = False


def test_readiness_says_so(acting_as: ActingAs, client: Client, in_production: None) -> None:
    assert client.get("/readyz").json()["guards"].startswith("the database role")
    with acting_as(WEB):
        assert client.get("/readyz").json()["guards"] == "ready"


def test_readiness_misses_a_guard_that_is_switched_off(db: None, client: Client) -> None:
    assert client.get("/readyz").json()["guards"] == "ready"
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE effects_effect DISABLE TRIGGER human_pen_only_rules")
    assert client.get("/readyz").json()["guards"] == "missing: human_pen_only_rules"
