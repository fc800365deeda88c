"""Every name of the sandbox, met by our own providers: the state it leads to, and what was really delivered."""

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.sandbox.behaviours import behaviour_of, is_definite, names
from effects.content import Content
from effects.ledger import Claim
from effects.models import Channel, Effect
from effects.sweeping import sweep
from effects.verdicts import ReplyKind
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import a_claim, send, state_of
from tests.sandbox import Sandbox, free_ports

pytestmark = pytest.mark.django_db(transaction=True)
DOCS = (Path(__file__).resolve().parents[2] / "docs" / "sandbox.md").read_text()
NEVER_WRITTEN = re.compile(r"(rcpt|data)-(drop|reset|silent|garbage)")  # nothing was accepted before 354
MAY_PASS = re.compile(r"429.*|(rcpt|data|dot)-4\d\d|" + NEVER_WRITTEN.pattern)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    http, smtp = free_ports(2)
    with Sandbox(tmp_path / "journal.jsonl", http=http, smtp=smtp) as running:
        yield running


def over_http(sandbox: Sandbox, **settings: object) -> Channel:
    return world.a_channel(settings=sandbox.http_settings | {"timeout": 1.5, "settle_window": 0.0, "window": 128} | settings)


def over_smtp(sandbox: Sandbox, **settings: object) -> Channel:
    typed = {"port": sandbox.smtp, "timeout": 1.5, "settle_window": 0.0, "window": 128}
    return world.a_channel(slug="mail", provider="smtp", settings=sandbox.smtp_settings | typed | settings)


def expected(name: str) -> tuple[str, int]:
    """The state that the reply table (`docs/ledger.md`) gives this name, and the deliveries behind it."""
    if name in ("slow", "accepted-dot-no-receipt", "challenge"):
        return "done", 1
    if name == "challenge-410":
        return "stranded", 0
    if is_definite(name) or NEVER_WRITTEN.fullmatch(name):
        return "failed", 0
    return "unknown", int(name.startswith("accepted-"))


@pytest.mark.parametrize("front", ["http", "smtp"])
def test_every_name_leads_where_the_reply_table_says(workplace: Workplace, sandbox: Sandbox, front: str) -> None:
    channel = (over_http if front == "http" else over_smtp)(sandbox, timeout=3.0)  # more than slow, less than a drip
    claims = [a_claim(f"{name}+1@sandbox.example", text=f"marker: {name}") for name in [*names(front), "plain"]]
    send(workplace, channel, claims, window=256)
    counted = sandbox.counts()
    calls = {record.target for record in sandbox.calls() if record.number == 1}
    assert calls == {claim.content.to for claim in claims}, "every name was met, and once"
    assert sandbox.counts()["calls"] == len(claims)
    became = {effect.target.partition("+")[0]: effect for effect in Effect.objects.all()}
    assert {name: (became[name].state, counted["by_marker"].get(name, 0)) for name in names(front)} == {
        name: expected(name) for name in names(front)
    }
    assert became["plain"].state == "done"
    assert {name for name in names(front) if became[name].retry_at} == {name for name in names(front) if MAY_PASS.fullmatch(name)}


def test_every_name_is_in_the_guide() -> None:
    named = set(re.findall(r"`([\w-]+)`", DOCS))
    plain = {name.removeprefix("accepted-") for front in ("http", "smtp") for name in names(front)} - {"dot-no-receipt"}
    assert {name for name in plain if not name.isdigit()} <= named


def test_a_kept_reply_is_what_the_journal_says_was_written(workplace: Workplace, sandbox: Sandbox) -> None:
    send(workplace, over_http(sandbox), [a_claim("accepted-500@sandbox.example"), a_claim("plain@sandbox.example")])
    written = {record.target: base64.b64decode(record.answer) for record in sandbox.calls()}
    kept = {effect.target: bytes(effect.reply.raw) for effect in Effect.objects.all() if effect.reply.kind == ReplyKind.ANSWERED}
    assert kept == written


def test_a_letter_is_in_the_journal_as_it_was_frozen(workplace: Workplace, sandbox: Sandbox) -> None:
    content = Content("ada@sandbox.example", "Grüße", "marker: m.1\n.\n..two\nand 春\n", "<p>Hello</p>")
    send(workplace, over_smtp(sandbox), [Claim(a_claim("ada@sandbox.example").key, 0, content, content.digest())])
    [call] = sandbox.calls()
    assert call.content == {"subject": content.subject, "text": content.text, "html": content.html + "\n"}
    assert (call.marker, call.filed, call.receipt) == ("m.1", True, Effect.objects.get().receipt)


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("accepted-reset.absent-2", ["unknown", "done"]),
        ("accepted-500.500", ["unknown", "unknown"]),
        ("accepted-500.silent-1", ["unknown", "done"]),
        ("accepted-500.garbage", ["unknown", "unknown"]),
        ("accepted-500.no-receipt", ["unknown", "unknown"]),
        ("500", ["unknown", "unknown"]),
        ("accepted-500", ["done", "done"]),
    ],
)
def test_look_ups_are_late_or_lie_as_told(workplace: Workplace, sandbox: Sandbox, name: str, states: list[str]) -> None:
    target = f"{name}@sandbox.example"
    send(workplace, over_http(sandbox, timeout=0.5, settle_window=60.0), [a_claim(target)])
    seen = []
    for again in (False, True):
        if again:
            Effect.objects.filter(state="unknown").update(look_up_at="2020-01-01T00:00:00Z")
            past(sandbox, behaviour_of(target, "http").look_up.seconds or 0)
        workplace.run(sweep(workplace))
        seen.append(state_of(target))
    assert seen == states


def past(sandbox: Sandbox, seconds: float) -> None:
    """Wait until this long after the last call."""
    time.sleep(max(0.0, sandbox.calls()[-1].at + seconds + 0.1 - time.time()))


@pytest.mark.parametrize(("mode", "status", "deliveries"), [("ignored", 200, 2), ("honoured", 200, 1), ("refused", 409, 1)])
def test_a_key_counts_for_as_much_as_the_address_says(sandbox: Sandbox, mode: str, status: int, deliveries: int) -> None:
    letter = {"to": "ada@sandbox.example", "text": "marker: m1"}
    first = sandbox.post(letter, query=f"?keys={mode}", key="k:0")
    second = sandbox.post(letter, query=f"?keys={mode}", key="k:0")
    assert (first[0], second[0]) == (200, status)
    assert (first[1] == second[1]) == (mode == "honoured")
    assert sandbox.counts()["by_marker"] == {"m1": deliveries}


def test_a_killed_sandbox_remembers_what_it_filed(sandbox: Sandbox) -> None:
    assert sandbox.post({"to": "once-500@sandbox.example", "text": "marker: m1"}, key="k:0")[0] == 500
    assert sandbox.post({"to": "accepted-500@sandbox.example", "text": "marker: m2"}, key="l:0")[0] == 500
    sandbox.kill()
    with sandbox.journal.open("ab") as file:
        file.write(b'{"what": "call", "front": "ht')  # a line that was being written
    sandbox.start()
    assert (sandbox.look("k"), sandbox.look("l")) == (404, 200)
    assert sandbox.post({"to": "once-500@sandbox.example", "text": "marker: m1"}, key="k:0")[0] == 200
    assert sandbox.counts()["by_marker"] == {"m1": 1, "m2": 1}


def test_what_a_target_meets_depends_on_the_seed_and_its_name_alone() -> None:
    targets = [f"customer{n}@example.com" for n in range(1000)]

    def drawn(seed: int) -> list[str]:
        return [behaviour_of(target, "http", seed=seed, faults=0.2).name for target in targets]

    assert drawn(7) == drawn(7) != drawn(8)
    assert 150 < sum(map(bool, drawn(7))) < 250
    assert not any(behaviour_of(target, "http", seed=7).name for target in targets)
    assert len(set(drawn(7))) > 30
