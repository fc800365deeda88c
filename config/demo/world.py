"""`python -m config.demo.world`: the demo workspace, made once; tells who may sign in and how.

Passwords and the agent's token are random; they are kept in `demo.json` in the data folder, readable by its owner only.
"""

import json
import os
import secrets
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

WORKSPACE = "nordlicht"
PEOPLE = (
    ("Alice", "reviewer", "approves plans"),
    ("Bob", "reviewer", "answers for the agent, so he cannot approve its plans"),
    ("Dana", "operator", "resolves unknown effects and opens epochs"),
    ("Ed", "auditor", "reads everything, changes nothing"),
    ("Ada", "admin", "may do all of this"),
)


@dataclass(frozen=True)
class World:
    """What a visitor needs: passwords by e-mail address, and the agent's token."""

    workspace: str
    passwords: dict[str, str]
    token: str


def path_in(data_dir: Path) -> Path:
    """Where the demo's passwords and token are kept."""
    return data_dir / "demo.json"


def read(data_dir: Path) -> World:
    """The demo world of this data folder. Raises FileNotFoundError before it was built."""
    return World(**json.loads(path_in(data_dir).read_text()))


def build(data_dir: Path, *, rate: str) -> World:
    """Make the workspace, its people, the channel to the demo mailbox and the agent's token, unless they are there."""
    from django.db import transaction

    from accounts.models import Membership, User, Workspace
    from audit.chain import Actor
    from audit.people import add_token

    command = Actor("command", None, "make up")
    if path_in(data_dir).exists() and Workspace.objects.filter(slug=WORKSPACE).exists():
        _point_at_mailbox(Workspace.objects.get(slug=WORKSPACE))
        return read(data_dir)
    with transaction.atomic():
        workspace = Workspace.objects.create(slug=WORKSPACE, name="Nordlicht Books")
        passwords = {}
        for name, role, _ in PEOPLE:
            email, password = f"{name.lower()}@nordlicht.example", secrets.token_urlsafe(9)
            user = User.objects.create_user(email, password, name=name)
            Membership.objects.create(workspace=workspace, user=user, role=role)
            passwords[email] = password
        _point_at_mailbox(workspace, rate=rate, by=command)
        owner = User.objects.get(email="bob@nordlicht.example")
        _, secret = add_token(workspace, name="bookshop agent", owner=owner, by=command)
    world = World(WORKSPACE, passwords, secret)
    _keep(path_in(data_dir), json.dumps(asdict(world), indent=1))
    return world


def _point_at_mailbox(workspace: object, *, rate: str = "", by: object = None) -> None:
    """The channel to the mailbox; its ports may differ from those of the last start."""
    from accounts.models import Workspace
    from audit.chain import Actor
    from effects import channels
    from effects.models import Channel

    assert isinstance(workspace, Workspace)
    port, pages = os.environ["SIGNOFF_MAILBOX_SMTP_PORT"], os.environ["SIGNOFF_MAILBOX_URL"]
    moving = {"port": port, "lookup_url": pages.replace("localhost", "127.0.0.1") + "lookup?message_id={message_id}"}
    if isinstance(by, Actor):
        fixed = {"host": "127.0.0.1", "tls": "none", "from": "Marit at Nordlicht Books <marit@nordlicht.example>"}
        fixed |= {"window": "16", "rate": rate, "timeout": "5", "settle_window": "5"}
        channels.add(workspace, slug="letters", provider="smtp", settings=fixed | moving, secrets={}, by=by)
        return
    channel = Channel.objects.get(workspace=workspace, slug="letters")
    channel.settings |= {"port": int(port), "lookup_url": moving["lookup_url"]}
    channel.save(update_fields=["settings"])


def _keep(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def story(world: World) -> str:
    """Who may sign in, as a small table."""
    lines = ["Sign in as (the password beside it):"]
    for name, role, what in PEOPLE:
        email = f"{name.lower()}@nordlicht.example"
        lines.append(f"  {email:<24} {world.passwords[email]:<14} {role:<9} {what}")
    lines.append(f"The agent's API token: {world.token}")
    return "\n".join(lines)


def main() -> int:
    """Build and tell; `--rate N` is how many letters leave a second (10, so that one can watch)."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    rate = sys.argv[sys.argv.index("--rate") + 1] if "--rate" in sys.argv else "10"
    print(story(build(Path(os.environ["SIGNOFF_DATA_DIR"]), rate=rate)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
