"""One run: everything up, plans and faults by the seed, then heal, drain, Dana's rulings, drain, the final read."""

import base64
import logging
import os
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from config.stack import Stack
from tests.chaos import script
from tests.chaos.history import History
from tests.chaos.reading import connect, history_of, leaks_in, moving
from tests.sandbox import Sandbox

if TYPE_CHECKING:  # the cast needs Django set up
    from tests.chaos.cast import Tenant

TIMES = {"timeout": "2", "settle_window": "4", "window": "16", "rate": "14"}
CALLBACK_SECRET = "whsec_" + base64.b64encode(b"a provider's word, in chaos").decode()
DELAY = 0.2  # seconds that every call takes, so that a kill meets calls under way
PROCESSES = ("web", "worker", "worker2", "beat")
PATIENCE = 60.0  # seconds more for the agent to propose what it had no time for
DRAIN = 240.0  # seconds in which all must come to an end once nothing is broken any more; several runs share a machine


class Campaign:
    """One run on one Stack, whose services are up and whose tables are there; Django is set up in this process."""

    def __init__(self, stack: Stack, *, seed: int, seconds: float, tell: Callable[[str], None]) -> None:
        self.stack, self.seed, self.seconds, self.tell = stack, seed, seconds, tell
        self.address = stack.embedded.database_url
        self.sandbox = Sandbox(
            stack.home.path / "sandbox.jsonl", http=stack.home.port("sandbox-http"), smtp=stack.home.port("sandbox-smtp")
        )
        self.drained = True

    def run(self) -> History:
        """The history of the whole run."""
        from tests.chaos.nemesis import Nemesis
        from tests.chaos.people import Dana, Office, Onlooker, reachable, repeat_messages

        self._start()
        tenants = self._tenants()
        ended, over = threading.Event(), threading.Event()
        office = Office(tenants, self.seed, ended)
        onlooker = Onlooker(self.address, self.stack.embedded.redis_url, f"http://127.0.0.1:{self.stack.port}", tenants, over)
        nemesis = Nemesis(self.stack, self.seed, repeat_messages, self.tell)
        workspaces = [tenant.workspace.pk for tenant in tenants.values()]
        for thread in (office, onlooker):
            thread.start()
        self._wait(lambda: self.sandbox.counts()["calls"] > 0, PATIENCE)
        nemesis.run(script.acts(self.seed, self.seconds))
        nemesis.heal()
        self._wait(lambda: office.made >= script.needed(self.seed), PATIENCE)
        ended.set()
        office.join(30)
        self.tell("everything runs again; draining")
        self._wait(reachable, PATIENCE)
        dana = Dana(tenants, self.sandbox.journal, self.seed)
        dana.stop_touchy()
        for tenant in script.TENANTS:  # a clean tail: what is approved now meets nothing
            office.propose(script.Proposal(tenant, "http", tuple(f"tail{n}@readers.example" for n in range(10))), "tail")
        self._drain(workspaces, dana.lift)
        self.tell(f"Dana ruled on {dana.rule()} unknown rows, by the provider's own book")
        dana.open_an_epoch()
        self._drain(workspaces, dana.lift)
        over.set()
        onlooker.join(30)
        onlooker.look()
        history = history_of(self.address, self.sandbox.journal, workspaces, samples=onlooker.samples, faults=nemesis.faults)
        history.leaks = leaks_in(self._logs(), self._unspeakable(tenants))
        history.desk |= {tenant.workspace.pk: dana.desk(tenant) for tenant in tenants.values()}
        return history

    def _start(self) -> None:
        stack, journal = self.stack, shlex.quote(str(self.sandbox.journal))
        worker = stack.commands["worker"] + " --hostname {}@%h"
        forking = worker.replace("-A config", "-A tests.chaos.forking") + " --concurrency 2"
        stack.commands |= {"worker": worker.format("one"), "worker2": forking.format("two")}
        stack.commands["beat2"] = stack.commands["beat"].replace("beat-schedule", "beat-schedule-2")
        stack.commands["sandbox"] = (
            f"python -m config.sandbox --http-port {self.sandbox.http} --smtp-port {self.sandbox.smtp} --journal {journal} --delay {DELAY}"
            f" --callbacks http://127.0.0.1:{stack.port}/callbacks/acme/{script.TOLD}/ --callback-secret {CALLBACK_SECRET}"
        )
        stack.start("sandbox")
        stack.wait_for("sandbox", f"http://127.0.0.1:{self.sandbox.http}/count")
        for name in PROCESSES:
            stack.start(name)
        stack.wait_for_web()

    def _tenants(self) -> dict[str, "Tenant"]:
        from tests.chaos.cast import Tenant

        tenants = {slug: Tenant(slug) for slug in script.TENANTS}
        for tenant in tenants.values():
            for channel, (front, keys) in script.CHANNELS.items():
                if front == "smtp":
                    tenant.smtp(channel, self.sandbox.smtp_settings, **TIMES)
                else:
                    settings = self.sandbox.http_settings
                    secret = CALLBACK_SECRET if (tenant.slug, channel) == ("acme", script.TOLD) else ""
                    url = f"{settings['url']}?keys={keys}"
                    tenant.http(channel, settings | {"url": url}, callback_secret=secret, **TIMES)
            tenant.http(script.TOUCHY, self.sandbox.http_settings, **TIMES | {"rate": "0", "window": "64"})
        return tenants

    def _logs(self) -> list[Path]:
        """What our own processes wrote, over all their lives."""
        return [log for log in self.stack.home.log.glob("*.log") if log.stem in (*PROCESSES, "beat2")]

    def _unspeakable(self, tenants: dict[str, "Tenant"]) -> dict[str, str]:
        """What no log may hold, by kind."""
        secrets = {f"the token of {slug}": tenant.secret for slug, tenant in tenants.items()}
        keys = {f"the setting {name}": self.stack.environment[name] for name in ("SECRET_KEY", "SIGNOFF_ENCRYPTION_KEYS")}
        keys["the secret of callbacks"] = CALLBACK_SECRET
        return secrets | keys | {"the text of a letter": "your order has left our house", "an address": "@readers.example"}

    def _wait(self, until: Callable[[], bool], patience: float) -> None:
        deadline = time.monotonic() + patience
        while not until() and time.monotonic() < deadline:
            time.sleep(0.2)

    def _drain(self, workspaces: list[int], meanwhile: Callable[[], None]) -> None:
        """Until no machine has anything to do; what does not end in time is for the checker to name."""
        deadline = time.monotonic() + DRAIN
        while time.monotonic() < deadline:
            meanwhile()
            try:
                with connect(self.address) as connection:
                    if moving(connection, workspaces) == 0:
                        return
            except psycopg.OperationalError:
                pass
            time.sleep(0.5)
        self.drained = False


def set_up(stack: Stack) -> None:
    """Services, tables, and Django in this process."""
    stack.services()
    stack.run("manage.py", "migrate", "--no-input", name="migrate")
    os.environ |= stack.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # that connections break is the point
