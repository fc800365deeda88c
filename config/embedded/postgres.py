"""PostgreSQL in the data folder: made once, started and stopped by us, reachable from this machine only."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg

from config.embedded import programs
from config.embedded.child import TICK, Child, clear_leftovers
from config.embedded.home import Home
from config.embedded.owner import give
from config.embedded.refusal import Refusal, of_program

ROOM = 150_000_000  # bytes free before a first start: the empty cluster, its log ahead, and some air
RECOVERY = 300.0  # seconds: replaying the log after a power failure takes its time


class Postgres:
    """One cluster with one database, `signoff`, owned by a role of that name: no superuser, but it may make databases and roles."""

    name = "PostgreSQL"

    def __init__(self, home: Home) -> None:
        self.home = home
        self.data = home.path / "postgres"
        self.log = home.log / "postgres.log"
        self.url = ""
        self.child: Child | None = None

    def start(self) -> None:
        """Come back when it takes connections at `url`; make the cluster first where there is none."""
        bin_folder = programs.postgres_folder(self.home)
        if not self.data.exists():
            self._make(bin_folder)
        self._check_version(bin_folder)
        self._recover()
        for _ in range(3):  # somebody may take the port between our look and its bind
            port = self.home.port("postgres")
            self.child = self._launch(bin_folder, port)
            if self._is_ready():
                password = self.home.secret("postgres-password")
                self.url = f"postgresql://signoff:{password}@127.0.0.1:{port}/signoff"
                self._let_owner_make_roles(port)
                return
            if "Address already in use" not in self.child.said():
                break
        assert self.child is not None
        raise of_program(self.name, self.child.said(), self.log, self.home.path)

    def stop(self) -> None:
        """Disconnect everybody, write everything down, end."""
        if self.child:
            self.child.stop(patience=20)
        self.child = None

    def _launch(self, bin_folder: Path, port: int) -> Child:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",  # none: no folder to guard, no path too long
            "fsync": "on",
            "full_page_writes": "on",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return Child(
            [bin_folder / "postgres", "-D", self.data, *options],
            log=self.log,
            folder=self.home.path,
            environment=programs.ENVIRONMENT,
            farewell=signal.SIGINT,  # "fast": does not wait for clients to leave
            owner=self.home.owner,
        )

    def _is_ready(self) -> bool:
        """Wait for the word `ready` in the eighth line of its pid file, which is where pg_ctl looks too."""
        assert self.child is not None
        deadline = time.monotonic() + RECOVERY
        while self.child.code() is None and time.monotonic() < deadline:
            lines = self._pid_file()
            if len(lines) > 7 and lines[0] == str(self.child.pid) and lines[7].strip() == "ready":
                return True
            time.sleep(TICK)
        self.child.stop()
        return False

    def _let_owner_make_roles(self, port: int) -> None:
        """Those of web and worker (`manage.py roles`). A data folder of an earlier day was made without that."""
        password = self.home.secret("postgres-superuser-password")
        with psycopg.connect(f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres") as superuser:
            superuser.execute("ALTER ROLE signoff CREATEROLE")

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _recover(self) -> None:
        """After a kill or a power failure: end what is left of the last run, then clear its pid file.

        PostgreSQL clears the file itself, unless another process of its user now has its number. With no
        process left in the data folder nothing can hold the old shared memory, so taking it away is safe.
        """
        if self._pid_file():
            clear_leftovers(self.data)
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _check_version(self, bin_folder: Path) -> None:
        made_by = (self.data / "PG_VERSION").read_text().strip()
        answer = subprocess.run(
            [bin_folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            check=False,
            env=programs.ENVIRONMENT,
        ).stdout
        ours = answer.split()[-1].partition(".")[0] if answer else made_by
        if ours != made_by:
            raise Refusal(
                f"{self.data} was made by PostgreSQL {made_by} and this is {ours}: "
                f"set SIGNOFF_DATA_DIR to a new folder, or dump with {made_by} and load again."
            )

    def _make(self, bin_folder: Path) -> None:
        """Make the cluster beside its place, moved there when whole: a cut first start leaves nothing."""
        if shutil.disk_usage(self.home.path).free < ROOM:
            raise Refusal(
                f"Less than {ROOM // 1_000_000} MB are free for {self.home.path}: "
                f"free some space there, or set SIGNOFF_DATA_DIR to another disk."
            )
        fresh = self.home.path / "postgres.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        give(fresh, self.home.owner)
        password_file = fresh.with_name("postgres.password")
        password_file.touch(0o600)
        give(password_file, self.home.owner)
        password_file.write_text(self.home.secret("postgres-superuser-password"))
        try:
            self._run(
                [
                    *(
                        bin_folder / "initdb",
                        "--pgdata",
                        fresh,
                        "--username=postgres",
                        f"--pwfile={password_file}",
                    ),
                    *("--auth=scram-sha-256", "--data-checksums", "--encoding=UTF8"),
                    # Sorting that no update of the operating system can change under an index.
                    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                ]
            )
        finally:
            password_file.unlink()
        role = self.home.secret("postgres-password")
        self._run(
            [bin_folder / "postgres", "--single", "-D", fresh, "postgres"],
            f"CREATE ROLE signoff LOGIN CREATEDB PASSWORD '{role}'\nCREATE DATABASE signoff OWNER signoff\n",
        )
        fresh.rename(self.data)

    def _run(self, command: list[str | Path], asked: str = "") -> None:
        """Run one of its programs to the end as the servers' account; what it says goes to the log."""
        owner = self.home.owner
        try:
            done = subprocess.run(
                command,
                input=asked,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                cwd=self.home.path,
                env=programs.ENVIRONMENT,
                user=owner.uid if owner else None,
                group=owner.gid if owner else None,
                extra_groups=[] if owner else None,
                start_new_session=True,
            )
        except OSError as error:
            raise of_program(self.name, f"cannot execute: {error}", self.log, self.home.path) from error
        with self.log.open("a") as log:
            log.write(done.stdout)
        if done.returncode != 0 or "ERROR:" in done.stdout or "FATAL:" in done.stdout:
            raise of_program(self.name, done.stdout, self.log, self.home.path)
