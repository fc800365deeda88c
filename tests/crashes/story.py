"""One approved plan in a story of crashes: made, worked on, looked into afterwards."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from typing import Any

import psycopg
from django.db import connections

from approvals.coverage import counts
from approvals.models import Plan
from effects import queries
from effects.content import Content
from effects.models import Channel, Effect, Event, LookUp
from effects.states import WAITS_FOR_A_PERSON, State
from tests import world
from tests.crashes.invariants import Attempt, Facts, Post, Step
from tests.fakes import FakeHttp, FakeRelay

CLAIM = "SELECT attempt FROM effects_effect WHERE key = %s AND epoch = %s AND state = 'pending'"


class Journal:
    """What a provider saw, and whether the claim was there to be seen at that moment, from outside."""

    def __init__(self, provider: FakeHttp | FakeRelay) -> None:
        self.posts: list[Post] = []
        self._provider = provider
        self._outside: psycopg.Connection[Any] | None = None  # used by the provider's own thread only
        if isinstance(provider, FakeHttp):
            provider.before_answer, provider.before_completion = self._note_post, self._note_completion
        else:
            provider.before_answer = self._note_mail

    def of(self, plan: Plan) -> list[Post]:
        """The calls for the targets of this plan, approved or not."""
        targets = {row.target for row in world.rows_of(plan)}
        return [post for post in self.posts if post.target in targets]

    def close(self) -> None:
        if self._outside:
            self._outside.close()

    def _note_post(self, body: dict[str, Any]) -> None:
        provider, identity = self._provider, body["metadata"]
        assert isinstance(provider, FakeHttp)
        content = Content(**{name: value for name, value in body.items() if name != "metadata"})
        accepted = provider.behaviours.get(content.to, provider.otherwise).accepts
        receipt = provider.filed.get(f"{identity['key']}:{identity['epoch']}", "") if accepted else ""
        self._note(content, identity["key"], identity["epoch"], accepted, receipt, provider.said[-1])

    def _note_completion(self, target: str, receipt: str) -> None:
        """The challenge of what was created for this target is answered: from here on it is delivered; twice, if it was already."""
        n, created = next((n, post) for n, post in enumerate(self.posts) if post.target == target)
        if created.accepted:
            self.posts.append(created)
        pending = self.ask(CLAIM, created.key, created.epoch) != []
        self.posts[n] = replace(created, accepted=True, receipt=receipt, claimed=created.claimed and pending)

    def _note_mail(self, to: str, raw: bytes, accepted: bool) -> None:
        mail = message_from_bytes(raw.replace(b"\r\n..", b"\r\n.").removesuffix(b".\r\n"), policy=default)
        assert isinstance(self._provider, FakeRelay)
        receipt = f"Q{len(self._provider.messages)}" if accepted else ""
        key, _, epoch = str(mail["X-Signoff-Key"]).strip().rpartition(":")
        content = Content(to, str(mail["Subject"]), mail.get_content().replace("\r\n", "\n"))
        said = f"mail 250 as told\r\nrcpt 250 as told\r\ndata 354 as told\r\ndot 250 2.0.0 Ok: queued as {receipt}"
        self._note(content, key, int(epoch), accepted, receipt, said.encode())

    def _note(self, content: Content, key: str, epoch: int, accepted: bool, receipt: str, answer: bytes) -> None:
        at, claims = datetime.now(UTC), [attempt for (attempt,) in self.ask(CLAIM, key, epoch)]
        self.posts.append(
            Post(
                content.to,
                key,
                epoch,
                claims[0] if claims else 0,
                at,
                content.digest(),
                accepted,
                receipt,
                answer,
                len(claims) == 1,
            )
        )

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What another process sees at this moment; for the provider's thread only."""
        if self._outside is None:
            parameters = connections["default"].get_connection_params()
            address = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}
            self._outside = psycopg.connect(**address, autocommit=True)
        return self._outside.execute(query, values).fetchall()


def an_approved_plan(channel: Channel, *, rows: int, event: str) -> Plan:
    """A plan of so many letters to people of its own, proposed by a run, approved by Alice."""
    letters = [world.a_row(n, target=f"{event}-{n}@example.com") for n in range(1, rows + 1)]
    run = world.a_run(event_id=event)
    return world.approved(world.a_proposed_plan(letters, channel=channel, event_id=event, title=event, run_id=str(run.pk)))


def chunks_of(plan: Plan) -> list[int]:
    return [chunk.pk for chunk in plan.chunks.order_by("id")]


def facts_of(plan: Plan, posts: list[Post]) -> Facts:
    """All that is known of a plan: what was approved, what the ledger says, what the provider saw, what a person sees."""
    rows = [row for row in world.rows_of(plan) if not row.excluded_reason]
    effects = list(Effect.objects.filter(plan_id=plan.pk).select_related("kept_reply").order_by("id"))
    ids = [effect.pk for effect in effects]
    found = dict(LookUp.objects.filter(effect__in=ids, answer="found").values_list("effect_id", "receipt"))
    steps = Event.objects.filter(effect__in=ids).order_by("id").values_list("effect_id", "before", "after")
    desk = [case.effect for state in WAITS_FOR_A_PERSON for case in _desk(plan.workspace_id, state)]
    assert plan.decided_at is not None
    return Facts(
        approved={(row.key, row.epoch): row.content_digest for row in rows},
        decided_at=plan.decided_at,
        attempts=[_attempt(effect, found.get(effect.pk, "")) for effect in effects],
        trail=[Step(*step) for step in steps],
        posts=posts,
        desk={effect.pk: effect.reason for effect in desk if effect.plan_id == plan.pk},
        counts=counts(plan),
    )


def _desk(workspace_id: int, state: State) -> Iterator[queries.Case]:
    """Every page of the unknown desk."""
    page = queries.cases(workspace_id, state)
    yield from page.rows
    while page.more:
        page = queries.cases(workspace_id, state, after=page.more)
        yield from page.rows


def _attempt(effect: Effect, found: str) -> Attempt:
    kept = effect.reply
    return Attempt(
        effect.pk, effect.key, effect.epoch, effect.attempt, effect.target, effect.state, effect.content_digest,
        effect.reserved_at, effect.settled_at, effect.receipt, effect.reason,
        bytes(kept.raw) if kept else None, kept.at if kept else None, found,
    )  # fmt: skip
