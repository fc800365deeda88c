"""`manage.py optout add` and `manage.py optout lift`: targets that want nothing, for whoever hears of it first (a form, a mailbox)."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.errors import Refused
from accounts.models import Workspace
from approvals import opting_out
from audit.commands import COMMAND_LINE, workspace_called
from effects.models import Channel


class Command(BaseCommand):
    help = "Note who wants nothing more, and lift that."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="send nothing more to these targets, also in plans that are going out")
        add.add_argument("targets", nargs="*", metavar="TARGET")
        add.add_argument("--file", default="", help="more of them, one in each line; - is standard input")
        lift = acts.add_parser("lift", help="let plans that are proposed from now on reach this target again")
        lift.add_argument("target", metavar="TARGET")
        for one in (add, lift):
            one.add_argument("--workspace", required=True, metavar="SLUG")
            one.add_argument("--channel", default="", metavar="SLUG", help="through this channel alone; left out: through any")
            one.add_argument("--reason", required=True, help="why, or how they asked; it stands in the record")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = workspace_called(options["workspace"])
        channel = _channel(workspace, options["channel"])
        try:
            told: str = getattr(self, f"_{options['act']}")(workspace, channel, options)
        except Refused as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(told)

    def _add(self, workspace: Workspace, channel: Channel | None, options: dict[str, Any]) -> str:
        targets = [*options["targets"], *_lines(options["file"])]
        new = opting_out.opt_out(workspace, targets, by=COMMAND_LINE, reason=options["reason"], channel=channel)
        return f"{new:,} targets opted out; what was not sent to them yet is withheld."

    def _lift(self, workspace: Workspace, channel: Channel | None, options: dict[str, Any]) -> str:
        held = opting_out.held(workspace, options["target"], channel=channel)
        if not held:
            raise CommandError(
                f"{options['target']} has not opted out {f'of {channel.slug}' if channel else 'of every channel'}."
            )
        for one in held:
            opting_out.lift(one, by=COMMAND_LINE, reason=options["reason"])
        return f"{options['target']} is reached again by plans that are proposed from now on."


def _lines(path: str) -> list[str]:
    if not path:
        return []
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
        return text.removeprefix("\ufeff").splitlines()
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None


def _channel(workspace: Workspace, slug: str) -> Channel | None:
    if not slug:
        return None
    try:
        return Channel.objects.get(workspace=workspace, slug=slug)
    except Channel.DoesNotExist:
        raise CommandError(f"there is no channel {slug!r} in {workspace.slug}") from None
