"""Valkey, which speaks Redis: the hints between web and workers, kept in an append-only file."""

import socket
import time

from config.embedded import programs
from config.embedded.child import TICK, Child, clear_leftovers
from config.embedded.home import Home
from config.embedded.owner import give
from config.embedded.refusal import of_program

PATIENCE = 60.0  # seconds to read the append-only file again
SETTINGS = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
appendonly yes
save ""
maxmemory-policy noeviction
daemonize no
logfile ""
"""


class Valkey:
    """One server with a password, on 127.0.0.1."""

    name = "Valkey"

    def __init__(self, home: Home) -> None:
        self.home = home
        self.data = home.path / "valkey"
        self.log = home.log / "valkey.log"
        self.url = ""
        self.child: Child | None = None

    def start(self) -> None:
        """Come back when it answers at `url`."""
        program = programs.valkey_program(self.home)
        self.data.mkdir(mode=0o700, exist_ok=True)
        give(self.data, self.home.owner)
        clear_leftovers(self.data)
        password = self.home.secret("valkey-password")
        for _ in range(3):  # somebody may take the port between our look and its bind
            port = self.home.port("valkey")
            self._write_settings(port, password)
            self.child = Child(
                [program, self.data / "valkey.conf"],
                log=self.log,
                folder=self.data,
                environment=programs.ENVIRONMENT,
                owner=self.home.owner,
            )
            if self._is_ready(port, password):
                self.url = f"redis://:{password}@127.0.0.1:{port}/0"
                return
            if "Address already in use" not in self.child.said():
                break
        assert self.child is not None
        raise of_program(self.name, self.child.said(), self.log, self.home.path)

    def stop(self) -> None:
        """Write everything down, end."""
        if self.child:
            self.child.stop()
        self.child = None

    def _write_settings(self, port: int, password: str) -> None:
        """The settings in a file of its own, because a command line is everybody's to read."""
        file = self.data / "valkey.conf"
        file.unlink(missing_ok=True)
        file.touch(0o600)
        give(file, self.home.owner)
        folder = str(self.data).replace("\\", "\\\\").replace('"', '\\"')
        file.write_text(SETTINGS.format(port=port, password=password, folder=folder))

    def _is_ready(self, port: int, password: str) -> bool:
        assert self.child is not None
        deadline = time.monotonic() + PATIENCE
        while self.child.code() is None and time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as line:
                    line.sendall(f"AUTH {password}\r\nPING\r\nQUIT\r\n".encode())
                    if b"+PONG" in b"".join(iter(lambda: line.recv(100), b"")):
                        return True
            except OSError:
                pass
            time.sleep(TICK)
        self.child.stop()
        return False
