"""The sandbox as tests meet it: a real process on ports of its own, and its journal read from outside."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

from config.sandbox.journal import Record, read

ROOT = Path(__file__).resolve().parents[1]


class Sandbox:
    """`with Sandbox(journal, http=…, smtp=…) as sandbox:` a running sandbox; it can be killed and started again."""

    def __init__(
        self, journal: Path, *, http: int, smtp: int, seed: int = 0, faults: float = 0.0, more: tuple[str, ...] = ()
    ) -> None:
        self.journal, self.http, self.smtp = journal, http, smtp
        self.seed, self.faults, self.more = seed, faults, more
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Come back when it answers."""
        ports = ["--http-port", str(self.http), "--smtp-port", str(self.smtp)]
        told = ["--journal", str(self.journal), "--seed", str(self.seed), "--faults", str(self.faults)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "config.sandbox", *ports, *told, *self.more], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.counts()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the sandbox did not come up")

    def kill(self) -> None:
        """SIGKILL."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def post(self, body: Any, *, query: str = "", key: str = "") -> tuple[int, bytes]:
        """One call, and its answer."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Idempotency-Key": key} if key else {}
        return self._ask(urllib.request.Request(f"http://127.0.0.1:{self.http}/send{query}", raw, headers))

    def look(self, key: str) -> int:
        """The status of a look-up of `key` at epoch 0."""
        query = urllib.parse.urlencode({"key": key, "epoch": 0})
        return self._ask(urllib.request.Request(f"http://127.0.0.1:{self.http}/look?{query}"))[0]

    def counts(self) -> dict[str, Any]:
        """What it counted, by its own word."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/count", timeout=5) as answer:
            counts: dict[str, Any] = json.load(answer)
        return counts

    def calls(self) -> list[Record]:
        """The calls in its journal, look-ups left out."""
        return [record for record in read(self.journal) if record.what == "call"]

    @property
    def http_settings(self) -> dict[str, str]:
        """Settings of an `http` channel that sends here."""
        base = f"http://127.0.0.1:{self.http}"
        answers = {"challenge_field": "challenge", "challenge_url": f"{base}/answer"}
        return answers | {"url": f"{base}/send", "lookup_url": f"{base}/look?key={{key}}&epoch={{epoch}}"}

    @property
    def smtp_settings(self) -> dict[str, str]:
        """Settings of an `smtp` channel that sends here."""
        look_up = f"http://127.0.0.1:{self.http}/look?message_id={{message_id}}"
        return {"host": "127.0.0.1", "port": str(self.smtp), "tls": "none", "from": "us@sandbox.example", "lookup_url": look_up}

    def _ask(self, request: urllib.request.Request) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


def free_ports(n: int) -> list[int]:
    """As many ports that nobody listens on."""
    import socket

    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
