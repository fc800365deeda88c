"""The stack: its processes, its environment, and what it says when something is in the way."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded import Refusal
from config.stack import Stack, procfile

ROOT = Path(__file__).resolve().parents[2]
NAMED = {"DATABASE_URL": "postgresql://named/db", "REDIS_URL": "redis://named/0", "PATH": os.defpath}


@pytest.fixture
def stack(place: Path) -> Iterator[Stack]:
    """A stack whose services are named elsewhere, with processes of the tests' own."""
    with Stack(place, environment=NAMED) as made:
        made.commands = {
            "sleeper": "sleep 600",
            "parent": "sh -c 'sleep 600 & echo $!; wait'",
            "teller": 'sh -c "echo $SIGNOFF_DATA_DIR; exit 3"',
        }
        yield made


def until_it_says_something(stack: Stack, name: str) -> str:
    deadline = time.monotonic() + 20
    while not stack.logs(name).strip() and time.monotonic() < deadline:
        time.sleep(0.02)
    return stack.logs(name).strip()


def test_the_procfile_names_the_three_processes() -> None:
    assert list(procfile()) == ["web", "worker", "beat"]


def test_the_environment_is_whole_and_its_secrets_stay_the_same(place: Path) -> None:
    with Stack(place, environment=NAMED) as first:
        kept = {name: first.environment[name] for name in ("SECRET_KEY", "SIGNOFF_ENCRYPTION_KEYS")}
        assert first.environment["DATABASE_URL"] == NAMED["DATABASE_URL"]
        assert first.environment["DEBUG"] == "1"
        assert first.environment["ALLOWED_HOSTS"] == "localhost,127.0.0.1"
    with Stack(place, environment=NAMED) as second:
        assert kept.items() <= second.environment.items()
    with Stack(place, environment=NAMED | {"DEBUG": "0", "SECRET_KEY": "mine"}) as third:
        assert (third.environment["DEBUG"], third.environment["SECRET_KEY"]) == ("0", "mine")


def test_services_that_the_environment_names_are_left_alone(stack: Stack) -> None:
    services = stack.services()
    assert (services.postgres, services.valkey) == (None, None)
    assert stack.environment["REDIS_URL"] == NAMED["REDIS_URL"]


def test_it_refuses_a_busy_port_in_one_sentence(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with Stack(place, environment=NAMED | {"PORT": str(port)}) as stack, pytest.raises(Refusal) as refused:
            stack.claim_port()
    assert str(refused.value) == f"Port {port} is already in use: choose another one, as in `make up PORT=8001`."


@pytest.mark.parametrize("port", ["0", "65536", "abc", "-1"])
def test_it_refuses_a_port_that_is_none(place: Path, port: str) -> None:
    with pytest.raises(Refusal, match="is not a port"):
        Stack(place, environment=NAMED | {"PORT": port})


def test_a_kill_takes_the_children_of_a_process_along(stack: Stack) -> None:
    stack.start("parent")
    grandchild = int(until_it_says_something(stack, "parent"))
    stack.kill("parent")
    assert stack.dead() == {"parent": -signal.SIGKILL}
    deadline = time.monotonic() + 20
    while (alive := Path(f"/proc/{grandchild}/cmdline")).exists() and alive.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive.exists() or not alive.read_text()


def test_a_process_that_ended_is_reported_with_its_code_and_its_words(stack: Stack) -> None:
    stack.start("teller")
    assert until_it_says_something(stack, "teller") == str(stack.home.path)
    deadline = time.monotonic() + 20
    while not stack.dead() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert stack.dead() == {"teller": 3}


def test_a_process_is_started_with_the_address_of_its_own_role(stack: Stack) -> None:
    stack.commands["teller"] = 'sh -c "echo $DATABASE_URL"'
    stack.addresses["teller"] = "postgresql://db_web:secret@named/db"
    stack.start("teller")
    assert until_it_says_something(stack, "teller") == stack.addresses["teller"]
    assert stack.environment["DATABASE_URL"] == NAMED["DATABASE_URL"]


def test_a_restart_is_a_new_process_and_a_start_of_a_running_one_is_not(stack: Stack) -> None:
    first = stack.start("sleeper")
    assert stack.start("sleeper").pid == first.pid
    assert stack.restart("sleeper").pid != first.pid


def test_waiting_for_a_process_that_ended_is_refused_with_its_last_words(stack: Stack) -> None:
    stack.start("teller")
    with pytest.raises(Refusal, match="teller did not come up"):
        stack.wait_for("teller", "http://127.0.0.1:9/")


def test_a_command_that_fails_is_refused_with_its_last_line(stack: Stack) -> None:
    with pytest.raises(Refusal, match=r"failed \(the last line\)"):
        stack.run("-c", "print('first'); print('the last line'); raise SystemExit(1)", name="trial")
    assert (stack.home.log / "trial.log").read_text() == "first\nthe last line\n"


def test_up_answers_a_busy_port_with_one_sentence_and_no_traceback(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = str(stranger.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "config.up"],
            cwd=ROOT,
            env=os.environ | NAMED | {"PORT": port, "SIGNOFF_DATA_DIR": str(place)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stdout.startswith(f"Port {port} is already in use")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
