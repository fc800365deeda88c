"""`manage.py member add EMAIL --workspace SLUG --role ROLE`."""

import secrets
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.errors import Refused
from accounts.models import User
from accounts.roles import Role
from audit import people
from audit.commands import COMMAND_LINE, workspace_called


class Command(BaseCommand):
    help = "Add a person to a workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_subparsers(dest="act", required=True).add_parser("add", help="add a person")
        add.add_argument("email")
        add.add_argument("--workspace", required=True, metavar="SLUG")
        add.add_argument("--role", required=True, metavar="ROLE", help=", ".join(Role))
        add.add_argument("--name", default="", help="as people read it")
        add.add_argument("--password-stdin", action="store_true", help="read the password from standard input; else one is made")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = workspace_called(options["workspace"])
        known = User.objects.filter(email__iexact=options["email"]).exists()
        password = sys.stdin.readline().rstrip("\n") if options["password_stdin"] else secrets.token_urlsafe(12)
        try:
            member = people.add_member(
                workspace, options["email"], role=options["role"], name=options["name"], password=password, by=COMMAND_LINE
            )
        except Refused as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(f"{member.user.email} is {member.role} of {workspace.slug}.")
        if known:
            self.stdout.write("They had an account before and keep their password.")
        elif not options["password_stdin"]:
            self.stdout.write(f"Password, shown this once: {password}")
