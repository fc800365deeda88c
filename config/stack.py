"""All of Signoff's processes on this machine, as one thing that can be started, killed in part, and stopped.

with Stack(data_dir, port=8000) as stack:
    stack.services()
    stack.migrate()
    stack.start("web")
    stack.wait_for_web()
    stack.kill("worker")      # SIGKILL to the whole process group
"""

import base64
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from config import roles
from config.embedded import Child, Home, Refusal, Services, is_free

BASE_DIR = Path(__file__).resolve().parent.parent
TICK = 0.05  # seconds between two looks
PATIENCE = 10.0  # seconds that a process has to finish what it is doing


def procfile(path: Path = BASE_DIR / "Procfile") -> dict[str, str]:
    """Process name -> shell command line, as the Procfile says."""
    lines = (re.match(r"([\w-]+):\s*(.+)", line) for line in path.read_text().splitlines())
    return {line[1]: line[2] for line in lines if line}


def encryption_key() -> str:
    """A new Fernet key."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _port(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise Refusal(f"PORT={text} is not a port: give a number from 1 to 65535, as in `make up PORT=8001`.")


class Stack:
    """The processes of one data folder; `environment` is what every one of them is started with.

    Its DATABASE_URL is the owner's, for commands; after `migrate`, web, worker and beat get those of their own roles.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        say: Callable[[str], object] = print,
    ) -> None:
        given = dict(os.environ if environment is None else environment)
        postgres, valkey = not given.get("DATABASE_URL"), not given.get("REDIS_URL")
        self.port = port or _port(given.get("PORT") or "8000")
        self.home = Home.open(data_dir, servers=postgres or valkey, say=say)
        self.embedded = Services(self.home, postgres=postgres, valkey=valkey, keep_home=True)
        self.commands = procfile()
        self.addresses: dict[str, str] = {}  # process -> DATABASE_URL, where it is not the owner's
        self.say = say
        self.children: dict[str, Child] = {}
        self.environment = given | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{given.get('PATH', os.defpath)}",
            "PYTHONUNBUFFERED": "1",
            "SIGNOFF_DATA_DIR": str(self.home.path),
            "PORT": str(self.port),
            "DEBUG": given.get("DEBUG") or "1",
            "ALLOWED_HOSTS": given.get("ALLOWED_HOSTS") or "localhost,127.0.0.1",
            "SECRET_KEY": given.get("SECRET_KEY") or self.home.secret("secret-key"),
            "SIGNOFF_ENCRYPTION_KEYS": given.get("SIGNOFF_ENCRYPTION_KEYS")
            or self.home.secret("encryption-keys", encryption_key),
        }

    def services(self) -> Services:
        """The embedded PostgreSQL and Redis, started; those that the environment names are left alone."""
        self.embedded.start()
        if self.embedded.database_url:
            self.environment["DATABASE_URL"] = self.embedded.database_url
        if self.embedded.redis_url:
            self.environment["REDIS_URL"] = self.embedded.redis_url
        return self.embedded

    def claim_port(self) -> None:
        """Refuse when the port for the pages is taken."""
        if not is_free(self.port):
            raise Refusal(f"Port {self.port} is already in use: choose another one, as in `make up PORT=8001`.")

    def migrate(self) -> None:
        """Bring the tables up to date as their owner, and the roles that web, worker and beat log in as from here on."""
        self.run("manage.py", "migrate", "--no-input", name="migrate")
        passwords = {role: self.home.secret(f"postgres-{role}-password") for role in (roles.WEB, roles.WORKER)}
        given = {f"SIGNOFF_{role.upper()}_PASSWORD": password for role, password in passwords.items()}
        try:
            self.run("manage.py", "roles", name="roles", environment=given)
        except Refusal as refusal:
            if self.embedded.postgres or self.environment["DEBUG"] != "1":
                raise
            self.say(f"{refusal} Until then web and worker log in as the owner, which only DEBUG=1 allows.")
            return
        url = self.environment["DATABASE_URL"]
        self.addresses = {name: roles.address_of(url, role, passwords[role]) for name, role in roles.PROCESSES.items()}

    def environment_of(self, name: str) -> dict[str, str]:
        """What the process called `name` is started with."""
        return self.environment | ({"DATABASE_URL": self.addresses[name]} if name in self.addresses else {})

    def run(self, *arguments: str, name: str | None = None, environment: Mapping[str, str] | None = None) -> str:
        """Run Python with these arguments to its end; gives what it wrote, refuses when it fails."""
        log = self.home.log / f"{name or Path(arguments[-1]).stem}.log"
        done = subprocess.run(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=BASE_DIR,
            env=self.environment | dict(environment or {}),
            check=False,
            start_new_session=True,
        )
        with log.open("a") as file:
            file.write(done.stdout)
        if done.returncode:
            last = done.stdout.strip().rpartition("\n")[2]
            raise Refusal(f"`{' '.join(arguments)}` failed ({last or done.returncode}); all it said is in {log}.")
        return done.stdout

    def mailbox(self, *, delay: float = 0.0) -> str:
        """Start the demo mailbox on the ports it had last time; gives the address of its pages."""
        smtp, pages = self.home.port("mailbox-smtp"), self.home.port("mailbox-pages")
        journal = self.home.path / "mailbox.jsonl"
        self.commands["mailbox"] = (
            f"python -m config.mailbox --smtp-port {smtp} --http-port {pages}"
            f" --journal {shlex.quote(str(journal))} --delay {delay}"
        )
        address = f"http://localhost:{pages}/"
        self.environment |= {"SIGNOFF_MAILBOX_SMTP_PORT": str(smtp), "SIGNOFF_MAILBOX_URL": address}
        self.start("mailbox")
        self.wait_for("mailbox", address + "count")
        return address

    def start(self, name: str) -> Child:
        """Start the process called `name` in the Procfile, unless it runs."""
        child = self.children.get(name)
        if child is None or child.code() is not None:
            child = self.children[name] = Child(
                ["/bin/sh", "-c", f"exec {self.commands[name]}"],
                log=self.home.log / f"{name}.log",
                folder=BASE_DIR,
                environment=self.environment_of(name),
            )
        return child

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process called `name` and to all its own children."""
        self.children[name].kill(number)

    def restart(self, name: str) -> Child:
        """Stop the process called `name` in an orderly way if it runs, and start it."""
        if name in self.children:
            self.children[name].stop(PATIENCE)
        return self.start(name)

    def dead(self) -> dict[str, int]:
        """Name -> exit code (minus the signal) of every process that has ended without being asked."""
        codes = {name: child.code() for name, child in self.children.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def logs(self, name: str) -> str:
        """What the process called `name` has written since it was last started."""
        return self.children[name].said()

    def wait_for_web(self, patience: float = 60.0) -> str:
        """The address of the pages, once they are served."""
        address = f"http://localhost:{self.port}/"
        self.wait_for("web", f"http://127.0.0.1:{self.port}/healthz", patience)
        return address

    def wait_for(self, name: str, address: str, patience: float = 60.0) -> None:
        """Come back when `address` answers 200; refuse when the process behind it ends or takes too long."""
        deadline = time.monotonic() + patience
        said = "nothing"
        while self.children[name].code() is None and time.monotonic() < deadline:
            try:
                with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=5):
                    return
            except urllib.error.HTTPError as error:
                said = str(error)
            except OSError:
                pass
            time.sleep(TICK)
        log = self.home.log / f"{name}.log"
        tail = "\n".join(self.logs(name).strip().splitlines()[-15:])
        raise Refusal(f"{tail}\n{name} did not come up ({address} answers {said}); its log is {log}.")

    def stop(self) -> None:
        """End all processes, then the services they need, then let go of the data folder."""
        for child in self.children.values():
            child.ask_to_stop()
        deadline = time.monotonic() + PATIENCE
        for child in self.children.values():
            child.stop(max(0.0, deadline - time.monotonic()))
        self.children.clear()
        self.embedded.stop()
        self.home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
