"""`manage.py workspace add SLUG`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.errors import Refused
from audit import people
from audit.commands import COMMAND_LINE


class Command(BaseCommand):
    help = "Add a workspace: one tenant with its own people, channels, plans and ledger."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_subparsers(dest="act", required=True).add_parser("add", help="add a workspace")
        add.add_argument("slug", help="as it stands in addresses and keys; it never changes")
        add.add_argument("--name", default="", help="as people read it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = people.add_workspace(options["slug"], name=options["name"], by=COMMAND_LINE)
        except Refused as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(f"Workspace {workspace.slug} ({workspace.name}) was added.")
