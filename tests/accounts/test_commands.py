"""The command line: what it adds, what it prints, and that it refuses in one sentence with an exit code."""

import io
import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts import tokens
from accounts.models import Membership, Token, User, Workspace
from audit.models import Entry
from effects.channels import callback_keys
from effects.models import Channel
from effects.secrets import unseal
from tests.callers import OTHER, SECRET
from tests.world import PASSWORD, a_channel, a_workspace, alice, bob, charlie

pytestmark = pytest.mark.django_db


def says(*words: str) -> str:
    """What a command prints for scripts."""
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refusal(*words: str) -> str:
    """The one sentence with which a command refuses; nothing was added by then."""
    before = _everything()
    with pytest.raises(CommandError) as caught:
        says(*words)
    assert _everything() == before
    assert "\n" not in str(caught.value)
    assert caught.value.returncode == 1
    return str(caught.value)


def _everything() -> list[int]:
    return [model.objects.count() for model in (Workspace, User, Membership, Token, Channel, Entry)]


def recorded(act: str) -> Entry:
    entry = Entry.objects.get(act=act)
    assert (entry.actor_kind, entry.actor_id, entry.actor_name) == ("command", None, "manage.py")
    return entry


def test_a_workspace_is_added():
    says("workspace", "add", "acme-books")
    assert Workspace.objects.get().name == "Acme Books"
    assert recorded("workspace added").object_name == "acme-books"


def test_no_workspace_takes_an_address_of_our_own():
    from config.urls import urlpatterns

    first_parts = {str(entry.pattern).partition("/")[0] for entry in urlpatterns if str(entry.pattern)[:1] not in ("", "<")}
    for slug in first_parts | {"theme", "static", "API"}:
        assert "choose another" in refusal("workspace", "add", slug)
    says("workspace", "add", "other", "--name", "The Other")
    assert Workspace.objects.get(slug="other").name == "The Other"


def test_a_workspace_is_added_once_and_needs_a_slug():
    says("workspace", "add", "acme")
    assert "already" in refusal("workspace", "add", "acme")
    assert "slug" in refusal("workspace", "add", "a/b")


def test_a_member_gets_a_password_that_is_shown_once():
    a_workspace()
    told = says("member", "add", "Ana@People.example", "--workspace", "acme", "--role", "reviewer", "--name", "Ana")
    ana = User.objects.get()
    password = told.strip().rpartition(" ")[2]
    assert ana.check_password(password)
    assert len(password) >= 12
    assert (ana.email, ana.name, ana.memberships.get().role) == ("ana@people.example", "Ana", "reviewer")
    assert password not in json.dumps(list(Entry.objects.values()), default=str)
    assert recorded("member added").after == {"role": "reviewer", "name": "Ana"}


def test_a_password_can_come_from_standard_input(monkeypatch):
    a_workspace()
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    told = says("member", "add", "ana@people.example", "--workspace", "acme", "--role", "admin", "--password-stdin")
    assert User.objects.get().check_password(PASSWORD)
    assert PASSWORD not in told


def test_a_weak_password_is_refused(monkeypatch):
    a_workspace()
    monkeypatch.setattr("sys.stdin", io.StringIO("12345\n"))
    assert "short" in refusal("member", "add", "ana@people.example", "--workspace", "acme", "--role", "admin", "--password-stdin")


def test_somebody_known_joins_another_workspace_with_their_own_password():
    charlie()
    a_workspace()
    told = says("member", "add", "charlie@people.example", "--workspace", "acme", "--role", "auditor")
    assert charlie().check_password(PASSWORD)
    assert "keep their password" in told
    assert charlie().memberships.count() == 2


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("alice@people.example", "--workspace", "acme", "--role", "reviewer"), "already"),
        (("ana@people.example", "--workspace", "nowhere", "--role", "reviewer"), "nowhere"),
        (("ana@people.example", "--workspace", "acme", "--role", "king"), "role"),
        (("ana", "--workspace", "acme", "--role", "reviewer"), "address"),
    ],
)
def test_a_member_is_not_added_with(words, word):
    alice()
    assert word in refusal("member", "add", *words)


def test_a_token_is_printed_alone_so_that_a_script_can_take_it():
    bob()
    secret = says("token", "add", "mailer", "--workspace", "acme", "--owner", "bob@people.example").strip()
    token = tokens.read(secret)
    assert (token.name, token.owner, token.workspace) == ("mailer", bob(), a_workspace())
    entry = recorded("token added")
    assert entry.after == {"owner": "bob@people.example", "prefix": token.prefix}
    assert secret not in json.dumps(list(Entry.objects.values()), default=str)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("mailer", "--workspace", "acme", "--owner", "nobody@people.example"), "nobody"),
        (("mailer", "--workspace", "acme", "--owner", "charlie@people.example"), "not a member"),
        (("mailer", "--workspace", "nowhere", "--owner", "bob@people.example"), "nowhere"),
    ],
)
def test_a_token_is_not_added_with(words, word):
    bob()
    charlie()
    assert word in refusal("token", "add", *words)


def test_a_channel_is_added_with_settings_and_secrets():
    a_workspace()
    says(
        "channel", "add", "letters", "--workspace", "acme", "--provider", "http",
        "--set", "url=http://127.0.0.1:9/x?a=b", "timeout=5", "--set", "window=8", "--secret", "Authorization=Bearer s3cret",
    )  # fmt: skip
    channel = Channel.objects.get()
    assert channel.settings == {"url": "http://127.0.0.1:9/x?a=b", "timeout": 5.0, "window": 8}
    assert "s3cret" not in channel.secrets
    entry = recorded("channel added")
    assert entry.after["secrets"] == ["Authorization"]
    assert "s3cret" not in json.dumps(entry.after)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("--provider", "pigeon"), "pigeon"),
        (("--provider", "http"), "url"),
        (("--provider", "http", "--set", "url"), "name=value"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "colour=red"), "colour"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "timeout=soon"), "timeout"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "window=0"), "window"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "--secret", "callback_secret=short"), "begin with whsec_"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "--secret", "callback_secret=whsec_c2hvcnQ="), "24 to 64"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "--secret", f"Callback-Secret={SECRET}"), "must be written"),
        (("--provider", "http", "--set", "url=http://127.0.0.1:9/", "--secret", "callback_secret="), "begin with whsec_"),
    ],
)
def test_a_channel_is_not_added_with(words, word):
    a_workspace()
    assert word in refusal("channel", "add", "letters", "--workspace", "acme", *words)


def test_a_channel_of_either_provider_takes_a_secret_for_callbacks():
    a_workspace()
    smtp = ("--set", "host=relay.example", "from=us@acme.example")
    for slug, provider, settings in (("web", "http", ("--set", "url=http://127.0.0.1:9/")), ("mail", "smtp", smtp)):
        says(
            "channel", "add", slug, "--workspace", "acme", "--provider", provider, *settings, "--secret", f"callback_secret={SECRET}"
        )  # fmt: skip
        assert callback_keys(Channel.objects.get(slug=slug)) == [bytes(range(32))]


def test_secrets_of_a_channel_are_changed_one_by_one():
    channel = a_channel(a_workspace())
    at = ("channel", "secrets", "letters", "--workspace", "acme", "--secret")
    says(*at, "Authorization=Bearer s3cret", f"callback_secret={SECRET}")
    says(*at, f"callback_secret={OTHER} {SECRET}")
    channel.refresh_from_db()
    assert unseal(channel.secrets)["Authorization"] == "Bearer s3cret"
    assert len(callback_keys(channel)) == 2
    assert "whsec_" in refusal(*at, "callback_secret=nothing")
    assert "no channel 'other'" in refusal("channel", "secrets", "other", "--workspace", "acme", "--secret", "a=b")
    says(*at, "callback_secret=", "Authorization=")
    channel.refresh_from_db()
    assert (channel.secrets, callback_keys(channel)) == ("", [])
    entries = list(Entry.objects.filter(act="channel secrets changed").order_by("id").values_list("after", flat=True))
    assert entries[1] == {"changed": ["callback_secret"], "secrets": ["Authorization", "callback_secret"]}
    assert "s3cret" not in json.dumps(entries)
    assert "whsec" not in json.dumps(entries)


@pytest.mark.parametrize("command", ["workspace", "member", "token", "channel"])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        call_command(command, "add", "--help")
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out
