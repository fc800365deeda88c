"""Who is at work during a run: an agent that proposes, Alice who approves, somebody who looks, and Dana who cleans up."""

import contextlib
import itertools
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis
from django.db import Error as DatabaseError
from django.db import close_old_connections, connections
from django.test import Client
from kombu.exceptions import OperationalError as BrokerError

from accounts.errors import LostRace
from approvals import halting, opting_out
from approvals.models import Chunk, Plan
from approvals.tasks import look_at
from config.demo.visitors import Agent, Refusal
from config.sandbox import journal
from effects import holding, rulings
from effects.models import Channel, Effect, Pause
from effects.pausing import of_channel
from effects.states import State
from tests.chaos.cast import Tenant
from tests.chaos.history import Sample
from tests.chaos.reading import connect, sample
from tests.chaos.script import TOUCHY, Proposal, proposals

PACE = 0.8  # seconds between two plans


@contextmanager
def at_any_price() -> Iterator[None]:
    """What the database refuses while it is being broken is left undone; the connection is thrown away."""
    try:
        yield
    except (DatabaseError, psycopg.Error, BrokerError, LostRace):
        for connection in connections.all():
            connection.close()
    finally:
        close_old_connections()


class Office(threading.Thread):
    """The agent and Alice: one plan after another until `ended` is set."""

    def __init__(self, tenants: dict[str, Tenant], seed: int, ended: threading.Event) -> None:
        super().__init__(name="office", daemon=True)
        self.tenants, self.ended = tenants, ended
        self.script = proposals(seed)
        self.made = 0
        self.numbers = itertools.count(1)

    def run(self) -> None:
        last = ""
        for proposal in self.script:
            last = event = last if proposal.twin else f"event-{next(self.numbers)}"
            while not self.ended.is_set():  # an approval whose COMMIT was lost is made once more: the same keys, another plan
                with at_any_price():
                    self.propose(proposal, event)
                    self.made += 1
                    break
                self.ended.wait(0.2)
            if self.ended.wait(PACE):
                return

    def propose(self, proposal: Proposal, event: str) -> Plan:
        """One plan, proposed and approved."""
        tenant = self.tenants[proposal.tenant]
        plan = tenant.propose(proposal.targets, channel=proposal.channel, event=event)
        tenant.approve(plan)
        if proposal.leaving:
            opting_out.opt_out(tenant.workspace, proposal.leaving, by=tenant.dana, reason="They asked for no more letters.")
        return plan


class Onlooker(threading.Thread):
    """Takes a sample a second: the ledger by SQL, and the figures of the newest plans as the API shows them."""

    def __init__(self, address: str, broker: str, web: str, tenants: dict[str, Tenant], ended: threading.Event) -> None:
        super().__init__(name="onlooker", daemon=True)
        self.address, self.broker, self.tenants, self.ended = address, broker, tenants, ended
        self.agents = {tenant.workspace.pk: Agent(web, tenant.secret) for tenant in tenants.values()}
        self.samples: list[Sample] = []

    def run(self) -> None:
        while not self.ended.wait(1.0):
            with contextlib.suppress(psycopg.Error):
                self.look()

    def look(self) -> None:
        """One sample; a page that is away is a page that shows nothing."""
        with connect(self.address) as connection:
            newest = connection.execute("SELECT id, workspace_id FROM approvals_plan ORDER BY id DESC LIMIT 4").fetchall()
            shown = {}
            for plan, workspace in newest:
                with contextlib.suppress(Refusal, OSError, ValueError):
                    shown[plan] = self.agents[workspace].get(f"plans/{plan}")["counts"]
            self.samples.append(sample(connection, time.time(), list(self.agents), shown, self._queued()))

    def _queued(self) -> int:
        """Messages that wait at the broker; none while it is away."""
        with contextlib.suppress(redis.RedisError), redis.Redis.from_url(self.broker, socket_timeout=2) as broker:
            return int(broker.llen("celery"))
        return 0


def reachable() -> bool:
    """True when this process reaches the database again."""
    with contextlib.suppress(DatabaseError):
        return Plan.objects.count() >= 0
    return False


def repeat_messages() -> None:
    """Every open chunk is announced five times over, whoever has it: what a broker does when it delivers again."""
    with at_any_price():
        for id in list(Chunk.objects.exclude(due_at=None).values_list("id", flat=True))[-40:]:
            for _ in range(5):
                look_at.delay(id)


class Dana:
    """The operator after the storm: lifts pauses, stops what would wait for an hour, rules on unknowns by the provider's own book."""

    def __init__(self, tenants: dict[str, Tenant], file: Path, seed: int) -> None:
        self.tenants, self.file, self.lot = tenants, file, random.Random(f"{seed} dana")

    def lift(self) -> None:
        """No channel rests any more."""
        for tenant in self.tenants.values():
            held = {pause.subject for pause in Pause.objects.filter(workspace=tenant.workspace, lifted_at=None)}
            for channel in Channel.objects.filter(workspace=tenant.workspace):
                if of_channel(channel.pk) in held:
                    with at_any_price():
                        holding.resume_channel(channel, by=tenant.dana, reason="The storm is over.")

    def stop_touchy(self) -> None:
        """Their providers asked for an hour and more."""
        for tenant in self.tenants.values():
            for plan in Plan.objects.filter(channel__slug=TOUCHY, workspace=tenant.workspace, state="approved"):
                with at_any_price():
                    halting.stop(plan, by=tenant.dana, reason="Nobody waits for an hour here.")

    def rule(self) -> int:
        """Rule on half of what is unknown, truthfully; returns on how many. What is left stays for a person."""
        filed = {record.marker: record.receipt for record in journal.read(self.file) if record.filed}
        ruled = 0
        for tenant in self.tenants.values():
            for effect in Effect.objects.filter(workspace=tenant.workspace, state="unknown", look_up_at=None).order_by("id"):
                if self.lot.random() < 0.5:
                    with at_any_price():
                        self._rule_on(effect, tenant, filed)
                        ruled += 1
        return ruled

    def _rule_on(self, effect: Effect, tenant: Tenant, filed: dict[str, str]) -> None:
        markers = self._markers(effect)
        receipt = next((filed[marker] for marker in markers if marker in filed), "")
        told = {"by": tenant.dana, "seen": "unknown"}
        if receipt:
            rulings.resolve(effect, to=State.DONE, reason="It is in their book.", evidence=receipt, **told)
        elif self.lot.random() < 0.2:
            rulings.revoke(effect, reason="Nobody wants it any more.", **told)
        else:
            rulings.resolve(effect, to=State.FAILED, reason="It is not in their book.", evidence="", again=True, **told)

    def _markers(self, effect: Effect) -> list[str]:
        from approvals.models import Row

        texts = Row.objects.filter(key=effect.key, epoch=effect.epoch).values_list("text", flat=True)
        return [journal.marker_in(text) for text in texts]

    def desk(self, tenant: Tenant) -> int:
        """How many unknown rows the tenant's desk says to have."""
        browser = Client(headers={"host": "localhost"})
        browser.force_login(tenant.dana.user)
        page = browser.get(f"/{tenant.slug}/unknown/").content.decode()
        told = re.search(r"<strong>([\d,]+)\+?</strong>\s*unknown", page)
        return int(told[1].replace(",", "")) if told else 0

    def open_an_epoch(self) -> None:
        """One done effect of each tenant is wanted once more, on purpose; Alice approves that too."""
        for tenant in self.tenants.values():
            effect = Effect.objects.filter(
                workspace=tenant.workspace, state="done", superseded_by=None, target__endswith="@readers.example"
            ).first()
            if effect:
                rulings.open_epoch(effect, by=tenant.dana, reason="They lost the letter.", seen_epoch=effect.epoch)
                plan = tenant.propose([effect.target], channel=effect.channel.slug, event=effect.event_id)
                tenant.approve(plan)
