"""`python -m config.sandbox --http-port N --smtp-port N --journal FILE [--seed N] [--faults PERCENT] [--delay SECONDS]`.

`--callbacks ADDRESS --callback-secret whsec_…` lets it tell later what a target's tag asks for.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from config.sandbox import http, smtp
from config.sandbox.callbacks import Caller
from config.sandbox.journal import Journal
from effects.signatures import read_secrets


def main() -> int:
    """Serve until SIGINT or SIGTERM; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m config.sandbox", description="A provider that misbehaves as it is told.")
    parser.add_argument("--http-port", type=int, required=True)
    parser.add_argument("--smtp-port", type=int, required=True)
    parser.add_argument("--journal", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--seed", type=int, default=0, help="which of the targets without a name misbehave, and how")
    parser.add_argument("--faults", type=float, default=0.0, help="how many of them do, in percent (0)")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer to a call (0)")
    parser.add_argument("--callbacks", default="", metavar="ADDRESS", help="where it calls back (nowhere)")
    parser.add_argument("--callback-secret", default="", metavar="SECRET", help="whsec_…, as the channel's callback_secret")
    options = parser.parse_args()
    if options.callbacks:
        try:
            read_secrets(options.callback_secret)
        except ValueError as error:
            parser.error(f"--callback-secret {error}")
    try:
        asyncio.run(serve(options))
    except OSError as error:
        sys.stderr.write(f"The sandbox cannot start: {error}.\n")
        return 1
    return 0


async def serve(options: argparse.Namespace) -> None:
    """Both fronts over one journal."""
    journal = Journal(options.journal)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    later = Caller(journal, options.callbacks, options.callback_secret)
    told = {"seed": options.seed, "faults": options.faults / 100, "delay": options.delay, "later": later}
    servers = [
        await http.Front(journal, **told).listen(options.http_port),
        await smtp.Front(journal, **told).listen(options.smtp_port),
    ]
    sys.stdout.write(
        f"Taking calls at http://127.0.0.1:{options.http_port}/ and mail on 127.0.0.1:{options.smtp_port}; sending nothing\n"
    )
    sys.stdout.flush()
    await ended.wait()
    for server in servers:
        server.close()
    journal.close()


if __name__ == "__main__":
    sys.exit(main())
