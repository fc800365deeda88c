"""A mail relay. One recipient per message; the phase of the conversation decides what a broken connection means.

Before the relay has said 354 nothing was accepted. Once the message is written, a missing answer proves nothing: the relay may have
filed it (RFC 1047), so the wait after the final dot is long (RFC 5321 section 4.5.3.2.6 asks for ten minutes).
The raw reply is the relay's side of the conversation, a line for each phase: `mail 250 …`, `rcpt 250 …`, `data 354 …`, `dot 250 …`.
"""

import asyncio
import re
import socket
import time
from email.utils import parseaddr
from typing import ClassVar
from urllib.parse import quote

import aiosmtplib
from aiosmtplib import SMTPResponse

from effects import failpoints
from effects.providers.base import (
    Account,
    BadSettings,
    Capabilities,
    Delivery,
    Lost,
    NotSent,
    Setting,
    Sighting,
)
from effects.providers.letters import as_mail, message_id
from effects.providers.lookups import ask, checked_url
from effects.providers.outbound import addresses_of
from effects.providers.wire import Wire
from effects.verdicts import Reply, ReplyKind, Verdict, done, later, rejected, unknown

COMMAND_SECONDS = 30.0  # for all that comes before the message itself
CLOSING = 421  # the relay is about to hang up
FRESH_SECONDS = 5.0  # a connection idle for longer is asked with NOOP before it is used
QUEUED_AS = re.compile(r"queued as <?([^\s>]+)", re.IGNORECASE)


class Smtp:
    """Speak to one relay over a few kept-open connections."""

    name: ClassVar[str] = "smtp"
    capabilities: ClassVar[Capabilities] = Capabilities(
        own_key=False, look_up="by message id", definite="any 5xx or 4xx answer, before or after the message"
    )
    settings: ClassVar[dict[str, Setting]] = {
        "timeout": Setting(float, 600.0, "seconds to wait for the answer to the final dot"),
        "window": Setting(int, 16, "rows in flight per worker process; half as many connections"),
        "target_kind": Setting(str, "email", "how targets are resolved"),
        "host": Setting(str, "", "the relay's name"),
        "port": Setting(int, 587, "the relay's port"),
        "from": Setting(str, "", "the sender's address, with or without a name"),
        "tls": Setting(str, "starttls", "none, starttls or tls"),
        "user": Setting(str, "", "signs in with this name and the secret `password`"),
        "lookup_url": Setting(str, "", "asked with {message_id} filled in: 200 with a receipt is proof"),
        "receipt_field": Setting(str, "id", "the field of the look-up's JSON answer that is the receipt"),
    }

    def __init__(self, account: Account) -> None:
        chosen = account.settings
        self._account = account
        self._host, self._port, self._tls = chosen["host"], chosen["port"], chosen["tls"]
        if not self._host:
            raise BadSettings("host must name the mail relay")
        if self._tls not in ("none", "starttls", "tls"):
            raise BadSettings(f"tls must be none, starttls or tls, not {self._tls!r}")
        if self._tls == "none" and not account.loopback:
            raise BadSettings("tls must be starttls or tls (none is for a local start with DEBUG=1)")
        if "@" not in parseaddr(chosen["from"])[1] or re.search(r"[\r\n\0]", chosen["from"]):
            raise BadSettings("from must be an address such as Ada <ada@example.com>")
        lookup_url = chosen["lookup_url"]
        if lookup_url and "{message_id}" not in checked_url("lookup_url", lookup_url, account):
            raise BadSettings("lookup_url must hold {message_id}")
        self.preamble: float = min(COMMAND_SECONDS, chosen["timeout"])
        self._idle: list[tuple[aiosmtplib.SMTP, float]] = []

    async def send(self, delivery: Delivery) -> Reply:
        try:
            sender, message = as_mail(delivery, sender=self._account.settings["from"])
        except ValueError as error:
            return Reply(ReplyKind.WITHHELD, note=f"this letter cannot be written as a mail: {error}")
        said: list[str] = []
        relay = None
        try:
            async with asyncio.timeout(self.preamble):
                relay = await self._connection(said)
                taken = relay is not None and await self._envelope(relay, sender, delivery.content.to, said)
            if relay is None or not taken:
                await self._start_over(relay)
                return _answered(said)
            failpoints.reach("first-byte")
            if time.monotonic() > delivery.not_after:
                raise TimeoutError("the conversation took so long that somebody else may speak for this letter now")
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            _drop(relay)
            raise NotSent(f"before the message was written: {type(error).__name__}: {error}") from error
        except BaseException:
            _drop(relay)
            raise
        return await self._deliver(relay, message, said)

    async def _deliver(self, relay: aiosmtplib.SMTP, message: bytes, said: list[str]) -> Reply:
        """Write the message: from here on, silence proves nothing."""
        try:
            answer = await _write(relay, message, self._account.settings["timeout"])
        except (aiosmtplib.SMTPException, OSError) as error:
            _drop(relay)
            note = f"the message was written and not answered: {type(error).__name__}: {error}"
            raise Lost(note, _answered(said).raw) from error
        except BaseException:
            _drop(relay)
            raise
        said.append(_line("dot", answer))
        if answer.code == CLOSING:
            _drop(relay)
        else:
            self._keep(relay)
        return _answered(said)

    async def _start_over(self, relay: aiosmtplib.SMTP | None) -> None:
        """Make a connection ready for the next letter after a refusal; if it will not, let it go."""
        if relay is None:
            return
        try:
            await relay.rset(timeout=COMMAND_SECONDS)
        except (aiosmtplib.SMTPException, OSError):
            _drop(relay)
        else:
            self._keep(relay)

    def read(self, reply: Reply) -> Verdict:
        last = reply.raw.decode("utf-8", "replace").splitlines()[-1:]
        match = re.fullmatch(r"(auth|mail|rcpt|data|dot) (\d{3}) ?(.*)", last[0]) if last else None
        if match is None:
            return unknown("the relay's answer cannot be read")
        phase, code, words = match[1], int(match[2]), match[3]
        if phase == "dot" and code == 250:
            queued = QUEUED_AS.search(words)
            return done(queued[1] if queued else (words or "250"))
        if phase == "auth":
            return later(f"the relay refused to sign us in: {code} {words}", pauses=True, until_lifted=True)
        if 400 <= code < 500:
            return later(f"the relay said {code} {words}")
        if 500 <= code < 600:
            return rejected(f"the relay said {code} {words}")
        return unknown(f"the relay said {code} {words}")

    def can_look_up(self) -> bool:
        return bool(self._account.settings["lookup_url"])

    async def look_up(self, key: str, epoch: int, reply: Reply | None = None) -> Sighting:
        wanted = message_id(key, epoch, sender=self._account.settings["from"])
        url = self._account.settings["lookup_url"].replace("{message_id}", quote(wanted, safe=""))
        wire = Wire(url, headers={}, loopback=self._account.loopback)
        try:
            return await ask(url, wire=wire, field=self._account.settings["receipt_field"], seconds=COMMAND_SECONDS)
        finally:
            await wire.close()

    async def close(self) -> None:
        for relay, _ in self._idle:
            relay.close()
        self._idle.clear()

    async def _connection(self, said: list[str]) -> aiosmtplib.SMTP | None:
        """A signed-in connection: a kept-open one that still answers, or a new one. None, with the reason said, if we may not in."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            relay, since = self._idle.pop()
            try:
                if now - since > FRESH_SECONDS:
                    await relay.noop(timeout=COMMAND_SECONDS)
                if relay.is_connected:
                    return relay
            except (aiosmtplib.SMTPException, OSError):
                _drop(relay)
        try:
            return await self._connect()
        except aiosmtplib.SMTPAuthenticationError as error:
            said.append(_line("auth", SMTPResponse(error.code, error.message)))
            return None

    async def _connect(self) -> aiosmtplib.SMTP:
        address = (await addresses_of(self._host, self._port, loopback=self._account.loopback))[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        dialled = socket.socket(family, socket.SOCK_STREAM)
        dialled.setblocking(False)
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                await asyncio.get_running_loop().sock_connect(dialled, (address, self._port))
            relay = aiosmtplib.SMTP(
                hostname=self._host,
                sock=dialled,
                timeout=COMMAND_SECONDS,
                use_tls=self._tls == "tls",
                start_tls=self._tls == "starttls",
                username=self._account.settings["user"] or None,
                password=self._account.secrets.get("password"),
                local_hostname="signoff.local",
            )
            await relay.connect()
        except BaseException:
            dialled.close()
            raise
        return relay

    async def _envelope(self, relay: aiosmtplib.SMTP, sender: str, to: str, said: list[str]) -> bool:
        """MAIL, RCPT, DATA: True when the relay waits for the message. What it said is added to `said`."""
        plain = to.isascii()
        if not plain and not relay.supports_extension("smtputf8"):
            said.append("rcpt 553 this relay takes no addresses beyond ASCII")
            return False
        options, encoding = ([], "ascii") if plain else (["SMTPUTF8"], "utf-8")
        for phase, expected, step in (
            ("mail", {250}, lambda: relay.mail(sender, options=options, encoding=encoding)),
            ("rcpt", {250, 251, 252}, lambda: relay.rcpt(to, encoding=encoding)),
            ("data", {354}, lambda: relay.execute_command(b"DATA", timeout=COMMAND_SECONDS)),
        ):
            try:
                answer = await step()
            except aiosmtplib.SMTPResponseException as error:
                answer = SMTPResponse(error.code, error.message)
            if answer.code in expected:
                said.append(_line(phase, answer))
                continue
            if not 400 <= answer.code < 600:
                raise aiosmtplib.SMTPException(f"{phase} was answered {answer.code} {answer.message}")
            said.append(_line(phase, answer))
            return False
        return True

    def _keep(self, relay: aiosmtplib.SMTP) -> None:
        self._idle.append((relay, asyncio.get_running_loop().time()))


def _drop(relay: aiosmtplib.SMTP | None) -> None:
    """Close a connection at once: what is still buffered must not leave later."""
    if relay is not None:
        if relay.protocol is not None and isinstance(relay.protocol.transport, asyncio.WriteTransport):
            relay.protocol.transport.abort()
        relay.close()


async def _write(relay: aiosmtplib.SMTP, message: bytes, seconds: float) -> SMTPResponse:
    """Write the message and the final dot in one piece; the relay's answer to the dot. Raises when none comes."""
    if relay.protocol is None:
        raise aiosmtplib.SMTPServerDisconnected("the connection closed after 354")
    stuffed = re.sub(rb"(?m)^\.", b"..", message)
    relay.protocol.write(stuffed + (b"" if stuffed.endswith(b"\r\n") else b"\r\n") + b".\r\n")
    await failpoints.flushed("last-byte", lambda: _unwritten(relay))
    return await relay.protocol.read_response(timeout=seconds)


def _unwritten(relay: aiosmtplib.SMTP) -> int:
    transport = relay.protocol.transport if relay.protocol else None
    return transport.get_write_buffer_size() if isinstance(transport, asyncio.WriteTransport) else 0


def _line(phase: str, answer: SMTPResponse) -> str:
    return f"{phase} {answer.code} {' / '.join(answer.message.splitlines())}"


def _answered(said: list[str]) -> Reply:
    return Reply(ReplyKind.ANSWERED, "\r\n".join(said).encode("utf-8", "surrogateescape"))
