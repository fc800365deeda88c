"""`manage.py effects sweep`, and the kill switch: `manage.py effects pause` and `effects resume`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.errors import Refused
from audit.commands import COMMAND_LINE
from effects import holding
from effects.sweeping import sweep
from effects.workplace import Workplace


class Command(BaseCommand):
    help = "Work on the ledger from the command line."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        acts.add_parser("sweep", help="look once at what is overdue and what was called back; never sends")
        pause = acts.add_parser("pause", help="start no call of any workspace; calls under way end as they end")
        pause.add_argument("--reason", required=True, help="why; it stands in the record of every workspace")
        pause.add_argument("--minutes", type=int, help="how long; left out: until `effects resume`")
        resume = acts.add_parser("resume", help="end that pause; plans, channels and workspaces paused by themselves stay paused")
        resume.add_argument("--reason", required=True, help="why; it stands in the record of every workspace")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            told: str = getattr(self, f"_{options['act']}")(options)
        except Refused as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(told)

    def _sweep(self, options: dict[str, Any]) -> str:
        place = Workplace()
        try:
            return f"{place.run(sweep(place))} overdue effects and late callbacks were looked at."
        finally:
            place.close()

    def _pause(self, options: dict[str, Any]) -> str:
        pause = holding.pause_everything(by=COMMAND_LINE, reason=options["reason"], minutes=options["minutes"])
        until = f"until {pause.until:%Y-%m-%d %H:%M:%S} UTC" if pause.until else "until `manage.py effects resume`"
        return f"Nothing new is sent by anybody, {until}. Calls that are under way end as they end."

    def _resume(self, options: dict[str, Any]) -> str:
        holding.resume_everything(by=COMMAND_LINE, reason=options["reason"])
        return "It goes on. What is paused by itself (plans, channels, workspaces) stays paused."
