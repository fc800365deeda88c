"""The sandbox tells later what a target's tag asks for: a lost reply is settled by it, a bounce after done is news."""

import time
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from config.sandbox.callbacks import told_of
from config.sandbox.journal import Record, read
from effects.models import Callback, Effect
from effects.sweeping import sweep
from effects.workplace import Workplace
from tests import world
from tests.callers import SECRET, takes_callbacks
from tests.effects.pens import a_claim, send, state_of
from tests.sandbox import Sandbox, free_ports


@pytest.mark.django_db(transaction=True)
def test_a_lost_reply_is_settled_and_a_bounce_is_news(workplace: Workplace, live_server: LiveServer, tmp_path: Path) -> None:
    http, smtp = free_ports(2)
    address = f"{live_server.url}/callbacks/acme/letters/"
    with Sandbox(
        tmp_path / "journal.jsonl", http=http, smtp=smtp, more=("--callbacks", address, "--callback-secret", SECRET)
    ) as sandbox:
        channel = takes_callbacks(world.a_channel(settings=sandbox.http_settings | {"timeout": 1.5, "settle_window": 0.0}))
        targets = [f"{name}@sandbox.example" for name in ("accepted-reset.absent+delivered", "ada+bounced-7", "plain+7")]
        send(workplace, channel, [a_claim(target) for target in targets])
        assert [state_of(target) for target in targets] == ["unknown", "done", "done"]
        deadline = time.monotonic() + 10
        while Callback.objects.count() < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        workplace.run(sweep(workplace))
        filed = {record.target: record.receipt for record in sandbox.calls()}
    assert [state_of(target) for target in targets] == ["done", "done", "done"]
    assert Effect.objects.get(target=targets[0]).receipt == filed[targets[0]]
    assert sorted(Callback.objects.values_list("kind", "outcome")) == [("bounced", "contrary"), ("delivered", "settled")]
    assert {record.name for record in read(tmp_path / "journal.jsonl") if record.what == "callback"} <= {"bounced", "delivered"}


@pytest.mark.parametrize(
    ("target", "keys", "told"),
    [
        ("accepted-500+delivered@sandbox.example", ["v1:ab:0"], "delivered"),
        ("202+rejected-17@sandbox.example", ["<m@x>", "v1:ab:0"], "rejected"),
        ("invoice+bounced", ["v1:ab:2"], "bounced"),
        ("plain+17@sandbox.example", ["v1:ab:0"], None),
        ("plain+deliveredx@sandbox.example", ["v1:ab:0"], None),
        ("delivered@sandbox.example", ["v1:ab:0"], None),
        ("plain+delivered@sandbox.example", ["<m@x>"], None),
        ("plain+delivered@sandbox.example", [], None),
    ],
)
def test_a_tag_says_what_is_told(target: str, keys: list[str], told: str | None) -> None:
    body = told_of(Record("call", "http", target, keys=keys, receipt="h-1", attempt=2))
    assert (body and body["type"]) == told
    if body:
        assert (body["key"], body["epoch"], body["attempt"], body["receipt"]) == ("v1:ab", int(keys[-1][-1]), 2, "h-1")
