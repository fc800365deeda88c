"""The mailbox's SMTP side: it answers 250 only when the message is on the disk."""

import asyncio

from aiosmtpd.smtp import SMTP, Envelope, Session

from config.mailbox.journal import Journal


class Intake:
    """Takes every message; with `delay` each sender waits that long for the answer, on its own."""

    def __init__(self, journal: Journal, delay: float = 0.0) -> None:
        self.journal = journal
        self.delay = delay

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """The reply to the final dot. A sender that dies while it waits has sent all the same."""
        raw = envelope.original_content or b""
        try:
            entry = await self.journal.append(envelope.mail_from or "", envelope.rcpt_tos, raw)
        except OSError:
            return "452 4.3.1 Insufficient system storage"
        if self.delay:
            await asyncio.sleep(self.delay)
        return f"250 2.0.0 Ok: queued as {entry.id}"


async def listen(journal: Journal, *, port: int, delay: float = 0.0) -> asyncio.Server:
    """The listening server, on 127.0.0.1 only."""
    loop = asyncio.get_running_loop()

    def protocol() -> SMTP:
        # The name is given because the default asks the network for one.
        return SMTP(
            Intake(journal, delay),
            hostname="localhost",
            ident="Signoff mailbox",
            loop=loop,
            enable_SMTPUTF8=True,
        )

    return await loop.create_server(protocol, "127.0.0.1", port)
