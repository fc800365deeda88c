"""`python -m config.mailbox --smtp-port N --http-port N --journal FILE [--delay SECONDS]`."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from aiohttp import web

from config.mailbox.journal import Journal
from config.mailbox.pages import application
from config.mailbox.smtp import listen


def main() -> int:
    """Serve until SIGINT or SIGTERM; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m config.mailbox", description="A mailbox that takes every mail.")
    parser.add_argument("--smtp-port", type=int, required=True)
    parser.add_argument("--http-port", type=int, required=True)
    parser.add_argument("--journal", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds to wait before answering a message")
    options = parser.parse_args()
    try:
        asyncio.run(serve(options.journal, smtp=options.smtp_port, pages=options.http_port, delay=options.delay))
    except OSError as error:
        sys.stderr.write(f"The mailbox cannot start: {error}.\n")
        return 1
    return 0


async def serve(path: Path, *, smtp: int, pages: int, delay: float) -> None:
    """Both sides over one journal."""
    journal = Journal(path)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = web.AppRunner(application(journal), access_log=None)
    await runner.setup()
    server = await listen(journal, port=smtp, delay=delay)
    await web.TCPSite(runner, "127.0.0.1", pages).start()
    sys.stdout.write(f"Taking mail on 127.0.0.1:{smtp}, showing it at http://127.0.0.1:{pages}/\n")
    await ended.wait()
    server.close()
    await runner.cleanup()
    journal.close()


if __name__ == "__main__":
    sys.exit(main())
