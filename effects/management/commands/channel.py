"""`manage.py channel add SLUG --workspace SLUG --provider PROVIDER --set name=value … --secret name=value …`, and `channel secrets`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Workspace
from audit.commands import COMMAND_LINE, workspace_called
from effects import channels, providers
from effects.errors import BadChannel
from effects.models import Channel


class Command(BaseCommand):
    help = "Add a channel (a workspace's account at one provider), or change its secrets."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="add a channel", epilog=_settings())
        add.add_argument("slug")
        add.add_argument("--workspace", required=True, metavar="SLUG")
        add.add_argument("--provider", required=True, metavar="PROVIDER", help=", ".join(sorted(providers.register)))
        add.add_argument("--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="settings")
        add.add_argument("--secret", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="kept encrypted")

        secrets = acts.add_parser("secrets", help="change secrets of a channel; those not named stay")
        secrets.add_argument("slug")
        secrets.add_argument("--workspace", required=True, metavar="SLUG")
        secrets.add_argument(
            "--secret", nargs="+", action="extend", required=True, metavar="NAME=VALUE", help="NAME= takes it away"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = workspace_called(options["workspace"])
        try:
            told: str = getattr(self, f"_{options['act']}")(workspace, options)
        except BadChannel as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(told)

    def _add(self, workspace: Workspace, options: dict[str, Any]) -> str:
        channel = channels.add(
            workspace,
            slug=options["slug"],
            provider=options["provider"],
            settings=_pairs("--set", options["set"]),
            secrets=_pairs("--secret", options["secret"]),
            by=COMMAND_LINE,
        )
        return f"Channel {channel.slug} of {workspace.slug} sends by {channel.provider}."

    def _secrets(self, workspace: Workspace, options: dict[str, Any]) -> str:
        channel = Channel.objects.filter(workspace=workspace, slug=options["slug"]).first()
        if channel is None:
            raise CommandError(f"there is no channel {options['slug']!r} in {workspace.slug}")
        changed = _pairs("--secret", options["secret"])
        channels.change_secrets(channel, changed=changed, by=COMMAND_LINE)
        return f"Channel {channel.slug} of {workspace.slug} has other secrets now: {', '.join(sorted(changed))}."


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(f"{option} takes name=value, not {text!r}")
        pairs[name] = value
    return pairs


def _settings() -> str:
    return " ".join(f"{name}: {', '.join(sorted(providers.settings_of(name)))}." for name in sorted(providers.register))
