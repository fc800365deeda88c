"""The embedded PostgreSQL and Valkey: kept data, kept secrets, and whatever a crash leaves behind."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import redis

from config import embedded
from config.embedded import Home, Refusal, programs, refusal
from config.embedded.owner import Owner, may_enter
from config.embedded.postgres import Postgres
from config.embedded.valkey import Valkey

ROOT = Path(__file__).resolve().parents[2]
STARTER = """
import sys, time
from config import embedded
services = embedded.start(sys.argv[1])
print(services.postgres.child.pid, services.valkey.child.pid, services.database_url, flush=True)
time.sleep(600)
"""


def ask(services: embedded.Services, sql: str) -> object:
    with psycopg.connect(services.database_url) as connection:
        row = connection.execute(sql).fetchone()
    assert row
    return row[0]


def running(server: Postgres | Valkey | None) -> embedded.Child:
    assert server
    assert server.child
    return server.child


def until(happened: Callable[[], bool], patience: float = 20.0) -> bool:
    deadline = time.monotonic() + patience
    while not (done := happened()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return done


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def start_elsewhere(place: Path) -> tuple[subprocess.Popen[str], int, int, str]:
    """Another process that starts the servers of `place` and keeps them."""
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert starter.stdout
    postgres, valkey, url = starter.stdout.readline().split()
    return starter, int(postgres), int(valkey), url


def test_data_and_addresses_are_the_same_after_a_second_start(place: Path) -> None:
    with embedded.start(place) as first:
        with psycopg.connect(first.database_url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        redis.Redis.from_url(first.redis_url).set("kept", "yes")
        urls = first.database_url, first.redis_url
    with embedded.start(place) as second:
        assert (second.database_url, second.redis_url) == urls
        assert ask(second, "SELECT answer FROM kept") == 42
        assert redis.Redis.from_url(second.redis_url).get("kept") == b"yes"


def test_the_ledger_is_safe_from_a_power_failure_and_from_passers_by(place: Path) -> None:
    with embedded.start(place, valkey=False) as services:
        for setting, value in {
            "fsync": "on",
            "full_page_writes": "on",
            "data_checksums": "on",
            "password_encryption": "scram-sha-256",
            "listen_addresses": "127.0.0.1",
            "is_superuser": "off",
        }.items():
            assert ask(services, f"SELECT current_setting('{setting}')") == value, setting
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(services.database_url.replace("signoff:", "signoff:wrong"))


def test_redis_wants_its_password_and_never_drops_a_key_for_room(place: Path) -> None:
    with embedded.start(place, postgres=False) as services:
        address = services.redis_url.rpartition("@")[2]
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(f"redis://{address}").ping()
        client = redis.Redis.from_url(services.redis_url)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("bind") == {"bind": "127.0.0.1"}


def test_secrets_are_for_our_eyes_only_and_are_in_no_command_line(place: Path) -> None:
    with embedded.start(place) as services:
        secrets = list((services.data_dir / "secrets").iterdir())
        assert len(secrets) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in secrets} == {0o600}
        assert stat.S_IMODE((services.data_dir / "postgres").stat().st_mode) == 0o700
        assert stat.S_IMODE((services.data_dir / "valkey" / "valkey.conf").stat().st_mode) == 0o600
        for child in (running(services.postgres), running(services.valkey)):
            line = Path(f"/proc/{child.pid}/cmdline").read_text() + Path(f"/proc/{child.pid}/environ").read_text()
            assert not any(file.read_text().strip() in line for file in secrets)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hand a program to another account")
def test_root_runs_the_servers_as_an_account_that_owns_nothing_else(place: Path) -> None:
    with embedded.start(place) as services:
        for child in (running(services.postgres), running(services.valkey)):
            status = dict(line.split(":\t", 1) for line in Path(f"/proc/{child.pid}/status").read_text().splitlines())
            assert "0" not in status["Uid"].split() + status["Gid"].split()
            assert not status["Groups"].strip()


def test_the_servers_end_when_their_starter_is_killed(place: Path) -> None:
    starter, postgres, valkey, _ = start_elsewhere(place)
    starter.kill()
    starter.wait()
    assert until(lambda: not alive(postgres) and not alive(valkey))


def test_it_says_who_holds_the_folder_in_one_sentence(place: Path) -> None:
    with embedded.start(place, postgres=False), pytest.raises(Refusal) as refused:
        embedded.start(place, postgres=False)
    assert f"process {os.getpid()}" in str(refused.value)
    assert str(refused.value).count("\n") == 0


def test_it_recovers_from_a_stale_lock(place: Path) -> None:
    starter, postgres, valkey, _ = start_elsewhere(place)
    for pid in (starter.pid, postgres, valkey):
        os.kill(pid, signal.SIGKILL)
    starter.wait()
    assert (place / "lock").exists()
    assert (place / "postgres" / "postmaster.pid").exists()
    with embedded.start(place) as services:
        assert ask(services, "SELECT 1") == 1


def test_a_stale_pid_file_with_the_number_of_a_living_stranger_does_not_stop_it(place: Path) -> None:
    with embedded.start(place, valkey=False) as services:
        owner = services.home.owner
        running(services.postgres).kill()
    left = place / "postgres" / "postmaster.pid"
    stranger = subprocess.Popen(
        ["/bin/sleep", "600"], user=owner.uid if owner else None, group=owner.gid if owner else None, cwd="/"
    )
    try:
        left.write_text("\n".join([str(stranger.pid), *left.read_text().splitlines()[1:]]) + "\n")
        with embedded.start(place, valkey=False) as services:
            assert ask(services, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_first_start_that_was_cut_leaves_nothing_in_the_way(place: Path) -> None:
    half = place / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with embedded.start(place, valkey=False) as services:
        assert ask(services, "SELECT 1") == 1
    assert not half.exists()


def test_a_port_that_a_stranger_took_is_given_up_for_another(place: Path) -> None:
    with embedded.start(place, postgres=False) as services:
        port = services.home.port("valkey-next")
        assert port == services.home.port("valkey-next")
    with socket.create_server(("127.0.0.1", port)):
        home = Home.open(place)
        assert home.port("valkey-next") != port
        home.close()


def test_a_server_that_dies_is_noticed_and_brought_back(place: Path) -> None:
    with embedded.start(place, valkey=False) as services:
        assert services.dead() == []
        running(services.postgres).kill()
        assert services.dead() == ["PostgreSQL"]
        services.start()
        assert services.dead() == []
        assert ask(services, "SELECT 1") == 1


def test_data_of_another_major_version_is_refused_in_one_sentence(place: Path) -> None:
    with embedded.start(place, valkey=False):
        pass
    (place / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(Refusal, match=r"was made by PostgreSQL 12 and this is \d+: set SIGNOFF_DATA_DIR"):
        embedded.start(place, valkey=False)
    Home.open(place).close()  # a refusal lets go of the folder


def test_a_machine_without_binaries_is_told_which_address_to_set(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_package", lambda name: None)
    with pytest.raises(Refusal, match="set DATABASE_URL"):
        embedded.start(place, valkey=False)
    with pytest.raises(Refusal, match="set REDIS_URL"):
        embedded.start(place, postgres=False)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("FATAL: could not write lock file: No space left on device", "The disk with /data is full"),
        ("initdb: /lib/libc.so.6: version `GLIBC_2.27' not found", "no packaged PostgreSQL that runs on this"),
        ("cannot execute /x/postgres: Exec format error", "no packaged PostgreSQL that runs on this machine"),
        ("initdb: could not look up effective user ID 7: user does not exist", "an account without a name"),
        ("FATAL: could not open file: Permission denied", "was refused access while starting"),
        ("LOG: one\nFATAL: the reason\nLOG: shut down\n", "did not start (FATAL: the reason)"),
        ("", "it said nothing"),
    ],
)
def test_what_a_program_says_becomes_one_sentence(said: str, sentence: str) -> None:
    told = str(refusal.of_program("PostgreSQL", said, Path("/data/log"), Path("/data")))
    assert sentence in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(errno.ENOSPC, "is full"), (errno.EACCES, "may not write"), (errno.EROFS, "may not write"), (errno.EIO, "output")],
)
def test_what_the_system_answers_becomes_one_sentence(number: int, sentence: str) -> None:
    told = str(refusal.of_system(OSError(number, os.strerror(number)), Path("/data")))
    assert sentence in told
    assert "/data" in told


def test_a_file_in_the_folders_place_is_refused_in_one_sentence(place: Path) -> None:
    (place / "file").write_text("")
    with pytest.raises(Refusal, match="is not a folder"):
        embedded.start(place / "file")


def test_a_folder_behind_a_closed_door_cannot_be_entered(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    assert not may_enter(closed / "data", Owner(54321, 54321))
    closed.chmod(0o711)
    assert may_enter(closed / "data", Owner(54321, 54321))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the servers as somebody else")
def test_data_and_programs_behind_a_closed_door_are_put_where_the_servers_can_reach_them(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.embedded.home.ELSEWHERE", place)
    monkeypatch.setattr(programs, "may_enter", lambda path, owner: False)
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    heard: list[str] = []
    with embedded.start(closed / "data", say=heard.append) as services:
        assert ask(services, "SELECT 1") == 1
        assert services.data_dir.parent == place
        assert Path(f"/proc/{running(services.postgres).pid}/exe").readlink().is_relative_to(services.data_dir)
    assert len(heard) == 1
    assert str(services.data_dir) in heard[0]
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert list(closed.iterdir()) == []


def test_a_log_that_has_grown_large_is_put_aside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.embedded.child.LOG_KEPT", 10)
    log = place / "echo.log"
    log.write_text("x" * 11)
    child = embedded.Child(["/bin/echo", "new"], log=log, folder=place, environment={})
    assert until(lambda: child.code() is not None)
    assert child.said() == "new\n"
    assert log.with_suffix(".log.old").read_text() == "x" * 11
