"""`manage.py token add NAME --workspace SLUG --owner EMAIL`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.errors import Refused
from audit import people
from audit.commands import COMMAND_LINE, person_called, workspace_called


class Command(BaseCommand):
    help = "Add a token for an agent; it may propose, read and withdraw, and decides nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_subparsers(dest="act", required=True).add_parser("add", help="add a token; its text is shown once")
        add.add_argument("name")
        add.add_argument("--workspace", required=True, metavar="SLUG")
        add.add_argument("--owner", required=True, metavar="EMAIL", help="who answers for what the token does")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, owner = workspace_called(options["workspace"]), person_called(options["owner"])
        try:
            token, secret = people.add_token(workspace, name=options["name"], owner=owner, by=COMMAND_LINE)
        except Refused as refusal:
            raise CommandError(str(refusal)) from None
        self.stderr.write(f"Token {token.name!r} of {workspace.slug}, answered for by {owner.email}. Shown this once:")
        self.stdout.write(secret)
