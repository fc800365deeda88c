"""The tenants of a run: a workspace with people, a token and channels to the sandbox; plans proposed and approved by the verbs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from accounts.models import Membership, Token, User, Workspace, digest_of, new_secret
from approvals import plans, voting
from approvals.incoming import NewRow
from approvals.models import Plan
from audit.chain import Actor
from effects import channels
from effects.actors import Human
from effects.models import Channel

COMMAND = Actor("command", None, "make chaos")


@dataclass
class Tenant:
    """One workspace, made at once."""

    slug: str
    workspace: Workspace = field(init=False)
    token: Token = field(init=False)
    secret: str = field(init=False)
    channels: dict[str, Channel] = field(init=False, default_factory=dict)
    made: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.workspace = Workspace.objects.create(slug=self.slug, name=self.slug.title())
        self.secret = new_secret()
        people = {}
        for name, role in (("alice", "reviewer"), ("bob", "reviewer"), ("dana", "operator")):
            people[name] = User.objects.create_user(f"{name}@{self.slug}.example", name=name.title())
            Membership.objects.create(workspace=self.workspace, user=people[name], role=role)
        self.alice, self.dana = (Human(people[name], self.workspace.pk, "127.0.0.1") for name in ("alice", "dana"))
        self.token = Token.objects.create(
            workspace=self.workspace, name="agent", owner=people["bob"], digest=digest_of(self.secret), prefix=self.secret[:12]
        )

    def http(self, slug: str, settings: dict[str, str], *, callback_secret: str = "", **more: str) -> Channel:
        """A channel over HTTP; the journal knows it by `account`. With a secret it takes callbacks."""
        url = settings["url"] + ("&" if "?" in settings["url"] else "?") + f"account={self.slug}-{slug}"
        secrets = {"callback_secret": callback_secret} if callback_secret else {}
        return self._channel(slug, "http", settings | {"url": url} | more, secrets)

    def smtp(self, slug: str, settings: dict[str, str], **more: str) -> Channel:
        """A channel over SMTP; the journal knows it by its sender."""
        return self._channel(slug, "smtp", settings | {"from": f"{self.slug}-{slug}@sandbox.example"} | more, {})

    def propose(self, targets: Iterable[str], *, channel: str, event: str = "", marks: str = "") -> Plan:
        """A proposed plan of letters, each with a marker that no other letter has; `marks` is where they begin."""
        self.made += 1
        name = f"{self.slug}-{self.made}"
        plan = plans.open_plan(
            self.workspace, token=self.token, channel=self.channels[channel], run_id="", title=f"Letters {name}",
            tool="send_email", event_id=event or f"event-{name}", rationale="To see what becomes of them.",
        )  # fmt: skip
        rows = [a_letter(target, f"{marks or name}-{n}") for n, target in enumerate(targets, 1)]
        plans.load(plan, rows, token=self.token)
        return plans.submit(plan, token=self.token)

    def approve(self, plan: Plan) -> None:
        """As Alice, ticking whatever warns."""
        ticked = frozenset(check["code"] for check in plan.checks)
        voting.approve(plan, by=self.alice, digest=plan.digest, ticked=ticked)

    def _channel(self, slug: str, provider: str, settings: dict[str, Any], secrets: dict[str, str]) -> Channel:
        self.channels[slug] = channels.add(
            self.workspace, slug=slug, provider=provider, settings=settings, secrets=secrets, by=COMMAND
        )
        return self.channels[slug]


def a_letter(target: str, marker: str) -> NewRow:
    """A finished letter that can be told from every other."""
    text = f"Dear reader,\n\nyour order has left our house today. Grüße!\n\nmarker: {marker}\n"
    html = f"<p>Dear reader, your order has left our house today.</p><p>marker: {marker}</p>"
    return NewRow(target=target, subject=f"Good news, {marker}", text=text, html=html)
