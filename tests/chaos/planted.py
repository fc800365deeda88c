"""Each planted defect in a short scenario that it cannot survive, against the product as it is in the same scenario.

Both are read and checked by what checks the whole campaign. No part of Celery takes part: `tests.chaos.defects` drives the send path.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.chaos.cast import Tenant
from tests.chaos.history import History
from tests.chaos.reading import connect, history_of, moving
from tests.sandbox import ROOT, Sandbox, free_ports

TIMES = {"timeout": "0.8", "settle_window": "0"}
PATIENCE = 6.0  # seconds for a scenario to drain; one that cannot is read as it stands


@dataclass
class Scene:
    """One scenario under way: a defect's name, the sandbox, and the drivers that were started."""

    defect: str
    address: str
    sandbox: Sandbox
    drivers: ExitStack
    tenants: list[Tenant]

    def tenant(self, name: str = "a") -> Tenant:
        """A workspace of this scenario, with one channel over HTTP."""
        tenant = Tenant(f"{self.defect}-{name}-{os.urandom(2).hex()}")
        tenant.http("http", self.sandbox.http_settings, **TIMES)
        self.tenants.append(tenant)
        return tenant

    def driver(self, *plans: int, circumstances: str = "", defect: str | None = None) -> subprocess.Popen[str]:
        """A process at work on these plans, with the defect in it."""
        name = ",".join(filter(None, [self.defect if defect is None else defect, circumstances]))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.defects", name, "60", *map(str, plans)],
            cwd=ROOT, env=os.environ | {"DATABASE_URL": self.address}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.drivers.callback(_end, process)
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        return process

    def states(self) -> list[str]:
        """The states in the ledger of this scenario."""
        with connect(self.address) as connection:
            query = "SELECT state FROM effects_effect WHERE workspace_id = ANY(%s) ORDER BY id"
            return [state for (state,) in connection.execute(query, (self.workspaces,)).fetchall()]

    def wait(self, until: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Come back when it is so, or when patience ends."""
        deadline = time.monotonic() + patience
        while not until() and time.monotonic() < deadline:
            time.sleep(0.05)

    def drain(self) -> History:
        """Wait until no machine has anything to do, then read everything."""
        with connect(self.address) as connection:
            self.wait(lambda: moving(connection, self.workspaces) == 0)
            self.wait(lambda: connection.execute("SELECT 1").fetchone() is None, 0.3)  # what is late shows now
        self.drivers.close()
        return history_of(self.address, self.sandbox.journal, self.workspaces)

    @property
    def workspaces(self) -> list[int]:
        return [tenant.workspace.pk for tenant in self.tenants]


def targets(*names: str) -> list[str]:
    """Addresses of the sandbox with these names; `plain` ones are ordinary."""
    return [f"{name}+{n}@sandbox.example" for n, name in enumerate(names)]


def one_plan(scene: Scene, *names: str, circumstances: str = "") -> None:
    """One plan to targets of these names, and one process at work on it."""
    tenant = scene.tenant()
    plan = tenant.propose(targets(*names), channel="http")
    scene.driver(plan.pk, circumstances=circumstances)
    tenant.approve(plan)


def lost_replies(scene: Scene) -> None:
    one_plan(scene, "accepted-500.absent", "accepted-503.absent", "plain", "plain")


def silence(scene: Scene) -> None:
    one_plan(scene, "accepted-silent.absent", "silent.absent", "plain")


def nothing_special(scene: Scene) -> None:
    one_plan(scene, *["plain"] * 6)


def decorated_letters(scene: Scene) -> None:
    """Withheld rows are `failed`, for good: the targets bear a name by which that is expected."""
    one_plan(scene, "400", "500", circumstances="decorated")


def two_plans_for_one_key(scene: Scene) -> None:
    """The second plan loses to a call that is refused in the end, and then it is its turn."""
    tenant = scene.tenant()
    tenant.channels["http"].settings["timeout"] = 4.0
    tenant.channels["http"].save()
    first, second = (tenant.propose(["once-slow-400@sandbox.example"], channel="http", event="one") for _ in range(2))
    scene.driver(first.pk)
    scene.driver(second.pk)
    tenant.approve(first)
    scene.wait(lambda: scene.states() == ["pending"])
    tenant.approve(second)


def stopped_before_the_call(scene: Scene) -> None:
    """A worker is stopped between its reservation and the call, and goes on when its row is unknown already."""
    tenant = scene.tenant()
    plan = tenant.propose(targets("500"), channel="http")
    stopped = scene.driver(plan.pk, circumstances="hasty,stopped-once")
    tenant.approve(plan)
    scene.wait(lambda: psutil.Process(stopped.pid).status() == psutil.STATUS_STOPPED)
    scene.driver(plan.pk, circumstances="hasty", defect="none")
    scene.wait(lambda: scene.states() == ["unknown"])
    time.sleep(0.6)  # so that the call, if it comes, is clearly later
    stopped.send_signal(signal.SIGCONT)
    time.sleep(0.5)


def one_rests_and_one_does_not(scene: Scene) -> None:
    resting, busy = scene.tenant("a"), scene.tenant("b")
    refused = resting.propose(targets("403"), channel="http")
    wanted = busy.propose(targets("plain", "plain"), channel="http")
    scene.driver(refused.pk, wanted.pk)
    resting.approve(refused)
    scene.wait(lambda: scene.states() == ["failed"])
    time.sleep(0.2)  # the pause comes after the state
    busy.approve(wanted)


# defect: (the scenario, the invariants of which one must speak)
PLANTED: dict[str, tuple[Callable[[Scene], None], set[str]]] = {
    "retry-on-500": (lost_replies, {"I1"}),
    "claim-after-the-call": (nothing_special, {"I9"}),
    "loser-is-skipped": (two_plans_for_one_key, {"I17"}),
    "failed-on-time-out": (silence, {"I3"}),
    "parse-before-keep": (nothing_special, {"I10"}),
    "no-look-before-the-first-byte": (stopped_before_the_call, {"I5"}),
    "no-digest-before-the-first-byte": (decorated_letters, {"I8"}),
    "process-wide-pause": (one_rests_and_one_does_not, {"I17"}),
}

QUICK = ("parse-before-keep", "failed-on-time-out", "no-look-before-the-first-byte", "no-digest-before-the-first-byte")


def play(defect: str, *, scenario: Callable[[Scene], None], address: str, folder: Path) -> History:
    """The history of this scenario with this defect (`none`: the product as it is) in the database at `address`."""
    http, smtp = free_ports(2)
    with Sandbox(folder / f"{defect}-{http}.jsonl", http=http, smtp=smtp) as sandbox, ExitStack() as drivers:
        scene = Scene(defect, address, sandbox, drivers, [])
        scenario(scene)
        return scene.drain()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()
