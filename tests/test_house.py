"""The house is tested too: sizes, names, docs against code, settings in their order."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from approvals import dispatch
from config.health import GUARDS
from effects import ledger, providers
from effects.channels import deadline_seconds, open_provider
from effects.models import Channel
from effects.states import ARROWS, State

ROOT = Path(__file__).resolve().parents[1]
APPS = ("accounts", "audit", "effects", "approvals", "runs", "config")
SOURCES = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
LEDGER = (ROOT / "docs" / "ledger.md").read_text()


def test_no_file_is_longer_than_three_hundred_lines() -> None:
    long = {str(path.relative_to(ROOT)): lines for path in SOURCES if (lines := len(path.read_text().splitlines())) > 300}
    assert not long


def test_no_module_is_called_after_a_layer() -> None:
    layers = {"services", "selectors", "managers", "utils", "helpers", "common", "core"}
    assert not {path.stem for path in SOURCES} & layers


def test_every_module_says_what_it_is() -> None:
    mute = [
        str(path.relative_to(ROOT)) for path in SOURCES if path.stat().st_size and not path.read_text().lstrip().startswith('"""')
    ]
    assert [path for path in mute if not path.endswith(("apps.py", "__init__.py"))] == []


def test_the_page_of_the_ledger_draws_the_arrows_of_the_code() -> None:
    drawn = {
        letter: (before, after) for before, after, letter in re.findall(r"^    (\w+) --> (\w+): ([b-j])$", LEDGER, re.MULTILINE)
    }
    assert drawn == {letter: (before.value, after.value) for letter, (before, after) in ARROWS.items()}
    assert all(f"| `{state.value}` |" in LEDGER for state in State)


def test_the_ledger_names_tests_that_exist() -> None:
    for file, test in re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", LEDGER):
        [path] = (ROOT / "tests").rglob(file)
        assert not test or f"def {test}" in path.read_text()


def test_readiness_looks_for_every_guard_of_the_ledger() -> None:
    triggers = set()
    for rules in ROOT.glob("*/sql/*.sql"):
        triggers |= set(re.findall(r"^CREATE TRIGGER (\w+)", rules.read_text(), re.MULTILINE))
    assert set(GUARDS) == triggers


def test_times_stand_in_their_order() -> None:
    """A turn and its last call end long before the broker gives a message to somebody else; a lease outlasts several renewals."""
    longest_call = 900 + 30  # the bound on a channel's timeout, and an SMTP conversation before its letter
    assert 2 * (5 + longest_call) < settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    assert not settings.DATABASES["default"]["ATOMIC_REQUESTS"]
    pool = settings.DATABASES["default"]["OPTIONS"]["pool"]
    assert pool["reconnect_timeout"] < pool["timeout"], "whoever waits for a connection sees more than one attempt"
    assert dispatch.TURNS < settings.CELERY_WORKER_CONCURRENCY
    assert not settings.CELERY_TASK_ACKS_LATE


@pytest.mark.parametrize("provider", sorted(providers.register))
@pytest.mark.parametrize("timeout", ["0.1", "30", "900"])
def test_a_call_ends_before_its_claim_does(provider: str, timeout: str) -> None:
    """Call time-out < life of a claim; past it the sweeper speaks for the row, and nobody is still making the call."""
    settings_of = {"http": {"url": "http://127.0.0.1:9/"}, "smtp": {"host": "127.0.0.1", "from": "a@b.example", "tls": "none"}}
    channel = Channel(provider=provider, settings=settings_of[provider] | {"timeout": float(timeout)}, secrets="")
    longest = ledger.START_WITHIN + open_provider(channel).preamble + float(timeout)
    assert longest < deadline_seconds(channel)


@pytest.mark.parametrize("name", sorted(providers.register))
def test_every_setting_of_a_provider_says_what_it_is_for(name: str) -> None:
    assert all(setting.help for setting in providers.settings_of(name).values())
    assert providers.register[name].capabilities.definite


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_lock_files_name_hashes_and_no_address() -> None:
    for path in ROOT.glob("requirements*.txt"):
        text = path.read_text()
        assert "--hash=sha256:" in text
        assert not re.search(r"https?://|--index-url", text)


def test_every_process_listens_for_chunks_that_are_due() -> None:
    """An approval in the web process is announced at once, not when beat comes round."""
    program = "import django; django.setup(); from approvals.dispatch import chunks_are_due; print(len(chunks_are_due.receivers))"
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "1"


def test_no_message_is_sent_for_later() -> None:
    """When something may be sent is in the database alone: a broker that keeps a message for later may give it to two (BR-01)."""
    for app in ("approvals", "effects", "runs", "config"):
        for path in (ROOT / app).rglob("*.py"):
            assert not re.search(r"\b(eta|countdown)\s*=|apply_async\(", path.read_text()), path
