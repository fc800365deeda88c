"""`manage.py effects sweep`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from effects.sweeping import sweep
from effects.workplace import Workplace


class Command(BaseCommand):
    help = "Work on the ledger from the command line."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        acts.add_parser("sweep", help="look once at what is overdue: read kept replies again, ask providers; never sends")

    def handle(self, *args: Any, **options: Any) -> None:
        place = Workplace()
        try:
            looked_at = place.run(sweep(place))
        finally:
            place.close()
        self.stdout.write(f"{looked_at} overdue effects were looked at.")
