"""The whole story with each process under its own role: every page, every act of a person and an agent, and the sending itself."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError

from accounts.roles import Role
from approvals import dispatch, tasks
from approvals.models import Chunk, Plan
from audit.models import Entry
from config.roles import WEB, WORKER
from effects.models import Callback, Effect, Pause
from effects.sweeping import sweep
from effects.workplace import Workplace
from runs.models import Run
from tests import world
from tests.callers import body_about, calls_back, takes_callbacks
from tests.effects.pens import claims_to, reserve, state_of
from tests.fakes import FakeHttp, accepts_then_dies, answers
from tests.pages.test_doors import DOORS, OPEN_DOORS, address_of, things
from tests.roles.conftest import ActingAs
from tests.runs.agents import Agent


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(chunk_id: int) -> None:
        raise OperationalError

    monkeypatch.setattr(tasks.look_at, "delay", gone)


@pytest.fixture
def ada(transactional_db: None) -> Client:
    """Ada may do everything that a person may."""
    return world.signed_in(world.a_person("Ada", Role.ADMIN))


def test_every_page_is_drawn_for_the_web_role(ada: Client, acting_as: ActingAs) -> None:
    numbers = things()
    addresses = (
        [address_of(path, numbers) for path, _ in DOORS] + [f"/{path}" for path in OPEN_DOORS] + ["/healthz", "/api/v1/docs"]
    )
    with acting_as(WEB):
        for address in addresses:
            answer = ada.get(address)
            assert answer.status_code in (200, 286, 302, 405), address
            if answer.streaming:
                assert b"".join(answer.streaming_content)  # exports


def test_people_sign_in_change_their_password_and_leave(acting_as: ActingAs, client: Client) -> None:
    email = world.alice().email
    with acting_as(WEB):
        assert client.post("/accounts/login/", {"login": email, "password": world.PASSWORD})["Location"] == "/"
        words = {"oldpassword": world.PASSWORD, "password1": "a much longer staple", "password2": "a much longer staple"}
        assert client.post("/accounts/password/change/", words).status_code == 302
        assert client.post("/accounts/logout/").status_code == 302
        assert client.post("/accounts/login/", {"login": email, "password": "a much longer staple"})["Location"] == "/"


def proposes(agent: Agent, event: str) -> Plan:
    """A plan of three letters, over the API, with every call an agent may make on the way."""
    run = agent.starts_a_run(event_id=event)
    assert agent.post(f"runs/{run}/tool-calls", {"calls": [{"name": "search"}]}).status_code in (200, 201)
    opened = agent.post("plans", agent.plan_words(run_id=run, event_id=event), key=f"open-{event}")
    assert opened.status_code == 201, opened.content
    plan = opened.json()["id"]
    letters = (
        f'{{"target": "{name}@example.com", "subject": "Hello", "text": "Dear {name}, your order has left."}}' for name in "abc"
    )
    assert agent.raw(f"plans/{plan}/rows", "\n".join(letters).encode()).status_code == 200
    assert agent.post(f"plans/{plan}/submit").status_code == 200
    assert agent.post(f"runs/{run}/finish").status_code == 200
    assert agent.get(f"plans/{plan}/rows").status_code == 200
    return Plan.objects.get(pk=plan)


def press(browser: Client, address: str, **words: Any) -> None:
    """POST a form; it must be taken."""
    answer = browser.post(f"/acme/{address}", {"reason": "because"} | words)
    assert answer.status_code in (302, 303), f"{address}: {answer.status_code} {answer.content.decode()[:3000]}"


def approves(browser: Client, plan: Plan) -> None:
    press(browser, f"plans/{plan.pk}/approval/", digest=plan.digest, ticked=[check["code"] for check in plan.checks])


def test_people_decide_on_plans_and_hold_them(ada: Client, acting_as: ActingAs) -> None:
    world.a_channel()
    agent = Agent()
    with acting_as(WEB):
        plan = proposes(agent, "one")
        press(ada, f"plans/{plan.pk}/exclusion/", positions="1")
        plan.refresh_from_db()
        approves(ada, plan)
        for act in ("pause", "resumption", "stop"):
            press(ada, f"plans/{plan.pk}/{act}/")
        for event, act in (("two", "rejection"), ("three", "changes")):
            other = proposes(agent, event)
            press(ada, f"plans/{other.pk}/{act}/", digest=other.digest)
        withdrawn = proposes(agent, "four")
        assert agent.post(f"plans/{withdrawn.pk}/withdraw", {"reason": "a mistake"}).status_code == 200
        replaced = agent.post("plans", agent.plan_words(event_id="four", replaces=withdrawn.pk))
        assert replaced.status_code == 201, replaced.content
        failed = agent.starts_a_run(event_id="five")
        assert agent.post(f"runs/{failed}/fail", {"reason": "lost"}).status_code == 200
    assert sorted(Plan.objects.values_list("state", flat=True)) == [
        "changes_requested", "draft", "rejected", "stopped", "withdrawn",
    ]  # fmt: skip
    assert Run.objects.get(pk=failed).state == "failed"


def test_people_rule_on_effects(ada: Client, acting_as: ActingAs) -> None:
    with FakeHttp() as provider:
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0})
        asked = world.an_effect("unknown", target="asked@example.com", channel=channel)
        pending = world.an_effect("pending", target="pending@example.com", channel=channel)
        provider.filed |= {f"{effect.key}:0": "r-5" for effect in (asked, pending)}
        ruled = {to: world.an_effect("unknown", target=f"{to}@example.com") for to in ("done", "failed", "stranded", "revoked")}
        taken_back = [world.an_effect(state, target=f"{state}@other.example") for state in ("unknown", "stranded")]
        Pause.objects.create(workspace=channel.workspace, subject=f"channel:{channel.pk}", reason="rests", started_by="a test")
        with acting_as(WEB):
            press(ada, f"effects/{asked.pk}/look-up/")
            press(ada, f"effects/{pending.pk}/look-up/")
            for to, effect in ruled.items():
                press(ada, f"effects/{effect.pk}/resolution/", to=to, evidence="seen", state="unknown")
            for effect in taken_back:
                press(ada, f"effects/{effect.pk}/revocation/", state=effect.state)
            press(ada, f"effects/{asked.pk}/epoch/", epoch=0)
            press(ada, "channels/letters/resumption/")
    states = {effect.pk: effect.state for effect in Effect.objects.all()}
    assert [states[effect.pk] for effect in (asked, pending)] == ["done", "pending"]
    assert {to: states[effect.pk] for to, effect in ruled.items()} == {to: to for to in ruled}
    assert {states[effect.pk] for effect in taken_back} == {"revoked"}
    assert Effect.objects.get(pk=asked.pk).superseded_by is not None
    assert Effect.objects.get(pk=asked.pk).events.filter(after="done").count() == 1


def test_a_callback_is_kept_applied_and_seen_each_by_its_own_role(ada: Client, acting_as: ActingAs, place: Workplace) -> None:
    takes_callbacks(world.a_channel())
    lost, sent = world.an_effect("unknown", target="lost@example.com"), world.an_effect("done")
    with acting_as(WEB):
        assert calls_back(body_about(lost, receipt="r-9")).status_code == 202
        assert calls_back(body_about(sent, "bounced"), event="ev-2").status_code == 202
        assert calls_back(body_about(sent, "bounced"), event="ev-2").status_code == 200
    with acting_as(WORKER):
        assert place.run(sweep(place)) == 2
        place.run(place.let_go())
    assert state_of("lost@example.com") == "done"
    with acting_as(WEB):
        assert "The provider says otherwise" in ada.get("/acme/inbox/").content.decode()
        press(ada, f"effects/{sent.pk}/news/", callback=Callback.objects.get(event_id="ev-2").pk)
        assert "The provider says otherwise" not in ada.get("/acme/inbox/").content.decode()


@pytest.fixture
def place(acting_as: ActingAs) -> Iterator[Workplace]:
    made = Workplace()
    yield made
    made.close()


def test_the_worker_sends_rests_sweeps_and_expires(ada: Client, acting_as: ActingAs, place: Workplace) -> None:
    with FakeHttp() as provider:
        provider.behaviours |= {"b@example.com": answers(429), "c@example.com": accepts_then_dies()}
        channel = world.a_channel(settings=provider.settings | {"timeout": 1.0, "settle_window": 0.0, "rate": 1000})
        agent = Agent()
        with acting_as(WEB):
            plan, late = proposes(agent, "one"), proposes(agent, "two")
            approves(ada, plan)
        Plan.objects.filter(pk=late.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
        Chunk.objects.update(announced_at=None)
        with acting_as(WORKER):
            assert dispatch.expire_plans() == 1
            [chunk] = dispatch.due_chunks()
            place.run(dispatch.work_on(chunk, place))
            assert [state_of(f"{name}@example.com") for name in "abc"] == ["done", "failed", "unknown"]
            assert Pause.objects.get().subject == f"channel:{channel.pk}"
            reserve(place, channel, claims_to("dead"), deadline=0.001)  # and no call: its worker died
            place.run(sweep(place))
            assert [state_of(f"{name}@example.com") for name in ("c", "dead")] == ["done", "unknown"]
            place.run(place.let_go())
    assert provider.deliveries == {"a@example.com": 1, "c@example.com": 1}
    assert Entry.objects.filter(act="plan expired", object_id=late.pk).exists()
