"""The cast and their things, in words. Every builder finds what is there already, or makes it.

Alice reviews. Bob answers for the agent's token (he is a reviewer too, who may not decide on his own work).
Dana operates, Ed audits. Charlie is a reviewer of another workspace, and may look at nothing of ours.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.models import Membership, Token, User, Workspace, digest_of
from accounts.roles import Role
from approvals import opting_out, plans, voting
from approvals.incoming import NewRow
from approvals.models import OptOut, Plan, Row
from effects.actors import Human
from effects.keys import effect_key, scope_of
from effects.models import Channel, Effect
from effects.states import BLOCKING, State
from runs.models import Run

PASSWORD = "correct horse battery staple"


def a_workspace(slug: str = "acme") -> Workspace:
    """Our workspace, or another one by its slug."""
    return Workspace.objects.get_or_create(slug=slug, defaults={"name": slug.title()})[0]


def a_person(name: str, role: Role, workspace: Workspace | None = None) -> User:
    """Somebody with this role in `workspace` (ours if not told)."""
    email = f"{name.lower()}@people.example"
    user = User.objects.filter(email=email).first() or User.objects.create_user(email, PASSWORD, name=name)
    Membership.objects.get_or_create(workspace=workspace or a_workspace(), user=user, defaults={"role": role.value})
    return user


def alice() -> User:
    """Reviews: approves, rejects, asks for changes."""
    return a_person("Alice", Role.REVIEWER)


def bob() -> User:
    """Answers for the agent's token, and is a reviewer."""
    return a_person("Bob", Role.REVIEWER)


def charlie() -> User:
    """Reviews in another workspace."""
    return a_person("Charlie", Role.REVIEWER, a_workspace("globex"))


def dana() -> User:
    """Operates: resolves unknowns, opens epochs."""
    return a_person("Dana", Role.OPERATOR)


def ed() -> User:
    """Audits: reads, exports, changes nothing."""
    return a_person("Ed", Role.AUDITOR)


def acting(user: User, workspace: Workspace | None = None) -> Human:
    """This person at the keyboard, as verbs of people take them."""
    return Human(user, (workspace or user.memberships.get().workspace).pk, "127.0.0.1")


def a_token(workspace: Workspace | None = None, *, name: str = "mailer", owner: User | None = None) -> Token:
    """The agent's token. Bob answers for ours, Charlie for one of his workspace. Its text: `secret_of`."""
    workspace = workspace or a_workspace()
    owner = owner or (bob() if workspace.slug == "acme" else charlie())
    secret = _secret(workspace, name)
    fields = {"owner": owner, "digest": digest_of(secret), "prefix": secret[:12]}
    return Token.objects.get_or_create(workspace=workspace, name=name, defaults=fields)[0]


def secret_of(token: Token) -> str:
    """The text of a token made by `a_token`."""
    return _secret(token.workspace, token.name)


def _secret(workspace: Workspace, name: str) -> str:
    return f"sgn_{workspace.slug}-{name}-for-tests-only"


def an_agent(token: Token | None = None) -> Client:
    """A client of the API with this token (the agent's of our workspace, if not told)."""
    return Client(headers={"Authorization": f"Bearer {secret_of(token or a_token())}"})


def signed_in(user: User) -> Client:
    """A browser in which this person is signed in."""
    client = Client()
    client.force_login(user)
    return client


def a_channel(
    workspace: Workspace | None = None,
    *,
    slug: str = "letters",
    provider: str = "http",
    settings: dict[str, Any] | None = None,
) -> Channel:
    """Our account at one provider. `http` takes any content, `smtp` takes letters."""
    defaults = {"http": {"url": "http://127.0.0.1:9/send"}, "smtp": {"host": "127.0.0.1", "port": 9, "from": "us@acme.example"}}
    return Channel.objects.get_or_create(
        workspace=workspace or a_workspace(),
        slug=slug,
        defaults={"provider": provider, "settings": defaults.get(provider, {}) | (settings or {})},
    )[0]


def a_run(token: Token | None = None, *, agent: str = "mailer", event_id: str = "spring-sale", **fields: Any) -> Run:
    """A new run in flight."""
    token = token or a_token()
    return Run.objects.create(workspace=token.workspace, token=token, agent=agent, event_id=event_id, **fields)


def a_row(n: int = 1, **fields: Any) -> NewRow:
    """A finished letter to the n-th customer, or with whatever is told."""
    letter = {
        "target": f"customer{n}@example.com",
        "subject": f"Good news, number {n}",
        "text": f"Dear customer {n},\n\nyour order has left our house today.\n",
    }
    return NewRow(**(letter | fields))


def some_rows(count: int) -> list[NewRow]:
    """Letters to the first `count` customers."""
    return [a_row(n) for n in range(1, count + 1)]


def a_draft(
    rows: int | Iterable[NewRow] = 0, *, token: Token | None = None, channel: Channel | None = None, **fields: Any
) -> Plan:
    """An opened plan with these rows (a number: that many letters)."""
    token = token or a_token()
    told = {"run_id": "", "title": "Spring sale", "tool": "send_email", "event_id": "spring-sale", "rationale": "It is spring."}
    plan = plans.open_plan(token.workspace, token=token, channel=channel or a_channel(token.workspace), **(told | fields))
    new = some_rows(rows) if isinstance(rows, int) else list(rows)
    if new:
        plans.load(plan, new, token=token)
    plan.refresh_from_db()
    return plan


def a_proposed_plan(rows: int | Iterable[NewRow] = 3, **fields: Any) -> Plan:
    """A plan that waits for a person's word: see `a_draft` for what may be told."""
    plan = a_draft(rows, **fields)
    return plans.submit(plan, token=plan.token)


def approved(plan: Plan) -> Plan:
    """The plan, approved by Alice as it stands."""
    voting.approve(plan, by=acting(alice()), digest=plan.digest, ticked=frozenset(check["code"] for check in plan.checks))
    plan.refresh_from_db()
    return plan


def an_opt_out(target: str = "customer1@example.com", *, reason: str = "wrote to us") -> OptOut:
    """A target of Acme's that wants nothing, through any channel; Dana noted it."""
    opting_out.opt_out(a_workspace(), [target], by=acting(dana()), reason=reason)
    return OptOut.objects.get(target=target, lifted_at=None)


def rows_of(plan: Plan) -> list[Row]:
    """A plan's rows in order."""
    return list(Row.objects.filter(plan=plan).order_by("position"))


def an_effect(
    state: str = "done",
    *,
    row: Row | None = None,
    target: str = "customer1@example.com",
    channel: Channel | None = None,
    **fields: Any,
) -> Effect:
    """A ledger row in this state, led there along the arrows: of a plan's `row`, or of its own.

    An attempt after a failed or revoked one is numbered by itself. An epoch above 0 must have been opened before.
    """
    channel = channel or (row.plan.channel if row else a_channel())
    event, tool = (row.plan.event_id, row.plan.tool) if row else ("spring-sale", "send_email")
    shape: dict[str, Any] = {
        "workspace": channel.workspace,
        "channel": channel,
        "event_id": event,
        "tool": tool,
        "target": row.target if row else target,
        "key": row.key if row else effect_key(event, tool, target, None, scope_of(channel.workspace.slug)),
        "epoch": row.epoch if row else 0,
        "amount_minor": row.amount_minor if row else None,
        "content_digest": row.content_digest if row else "sha256:" + "0" * 64,
        "plan_id": row.plan_id if row else None,
        "run_id": row.plan.run_id if row else "",
        "worker": "a worker of the tests",
        "deadline": timezone.now() + timedelta(minutes=5),
    }
    reason, receipt = fields.pop("reason", ""), fields.pop("receipt", "")
    shape |= fields
    earlier = Effect.objects.filter(key=shape["key"], epoch=shape["epoch"]).count()
    with transaction.atomic():
        effect = Effect.objects.create(**({"attempt": earlier + 1} | shape), state=State.PENDING)
        if state == State.REVOKED:
            _settle(effect, State.UNKNOWN, "no answer", "")
        if state != State.PENDING:
            _settle(effect, State(state), reason or f"{state}, as the test tells", receipt)
    return effect


def _settle(effect: Effect, state: State, reason: str, receipt: str) -> None:
    effect.state, effect.reason = state.value, reason
    effect.receipt = receipt or (f"receipt-{effect.pk}" if state == State.DONE else "")
    effect.settled_by, effect.settled_at = "the tests", timezone.now()
    effect.save()


def live_effects(key: str) -> list[Effect]:
    """The ledger rows that block this key, newest epoch first."""
    return list(Effect.objects.filter(key=key, state__in=[state.value for state in BLOCKING]).order_by("-epoch"))
