"""`manage.py channel add SLUG --workspace SLUG --provider PROVIDER --set name=value … --secret name=value …`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.commands import COMMAND_LINE, workspace_called
from effects import channels, providers
from effects.errors import BadChannel


class Command(BaseCommand):
    help = "Add a channel: a workspace's account at one provider."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_subparsers(dest="act", required=True).add_parser("add", help="add a channel", epilog=_settings())
        add.add_argument("slug")
        add.add_argument("--workspace", required=True, metavar="SLUG")
        add.add_argument("--provider", required=True, metavar="PROVIDER", help=", ".join(sorted(providers.register)))
        add.add_argument("--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="settings")
        add.add_argument("--secret", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="kept encrypted")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = workspace_called(options["workspace"])
        try:
            channel = channels.add(
                workspace,
                slug=options["slug"],
                provider=options["provider"],
                settings=_pairs("--set", options["set"]),
                secrets=_pairs("--secret", options["secret"]),
                by=COMMAND_LINE,
            )
        except BadChannel as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(f"Channel {channel.slug} of {workspace.slug} sends by {channel.provider}.")


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
