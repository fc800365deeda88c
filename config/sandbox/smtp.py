"""The SMTP front. The recipient's name decides at RCPT, DATA and the final dot, the sender's at MAIL, the user's at AUTH.

Written on sockets, because what is wanted here is what a server library prevents.
"""

import asyncio
import base64
import contextlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from config.sandbox.behaviours import ORDINARY, Behaviour, behaviour_of
from config.sandbox.http import SLOW, reset
from config.sandbox.journal import Journal, Record, marker_in, now

EXTENSIONS = ("sandbox", "8BITMIME", "SMTPUTF8", "SIZE 50000000", "AUTH PLAIN LOGIN")
LONGEST_MESSAGE = 50_000_000
REFUSED_USER = re.compile(r"auth-([45]\d\d)")


class HungUp(Exception):
    """The conversation ended as the script says."""


@dataclass
class Front:
    """One relay over one journal; `seed` and `faults` are those of `behaviour_of`, `delay` comes before each answer to the final dot."""

    journal: Journal
    seed: int = 0
    faults: float = 0.0
    delay: float = 0.0
    later: Callable[[Record], None] = lambda record: None

    async def listen(self, port: int) -> asyncio.Server:
        """The listening server, on 127.0.0.1 only."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, HungUp):
                await Conversation(self, reader, writer).hold()
            writer.close()

        return await asyncio.start_server(talk, "127.0.0.1", port, backlog=1024, limit=LONGEST_MESSAGE)


@dataclass
class Conversation:
    """One connection, letter after letter."""

    front: Front
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    sender: str = ""
    target: str = ""
    number: int = 0
    behaviour: Behaviour = ORDINARY

    async def hold(self) -> None:
        """Answer until the other side leaves or the script hangs up."""
        await self.say("220 sandbox ready")
        while line := (await self.reader.readline()).decode("utf-8", "replace").strip():
            verb, _, rest = line.partition(" ")
            match verb.upper():
                case "EHLO" | "HELO":
                    lines = EXTENSIONS if verb.upper() == "EHLO" else EXTENSIONS[:1]
                    await self.say(*(f"250{'-' if word != lines[-1] else ' '}{word}" for word in lines))
                case "AUTH":
                    await self.sign_in(rest)
                case "MAIL":
                    self.sender, self.target = _address(rest), ""
                    await self.step("mail", behaviour_of(self.sender, "smtp"), "250 2.1.0 sender ok")
                case "RCPT":
                    await self.recipient(_address(rest))
                case "DATA" if self.target:
                    await self.message()
                case "RSET" | "NOOP":
                    await self.say("250 2.0.0 ok")
                case "QUIT":
                    await self.say("221 2.0.0 bye")
                    return
                case _:
                    await self.say("503 5.5.1 not now")

    async def say(self, *lines: str) -> None:
        """Write these lines."""
        self.writer.write("".join(f"{line}\r\n" for line in lines).encode())
        await self.writer.drain()

    async def sign_in(self, rest: str) -> None:
        """Take any password; a user called `auth-535` is refused with that code."""
        mechanism, _, first = rest.partition(" ")
        if mechanism.upper() == "PLAIN":
            user = _plain(first or await self.ask("")).split("\0")[1:2]
        else:
            user = [_plain(first or await self.ask("VXNlcm5hbWU6"))]
            await self.ask("UGFzc3dvcmQ6")
        refused = REFUSED_USER.fullmatch(user[0] if user else "")
        await self.say(f"{refused[1]} 5.7.8 told to refuse this user" if refused else "235 2.7.0 signed in")

    async def ask(self, prompt: str) -> str:
        """One more line of a sign-in."""
        await self.say(f"334 {prompt}")
        return (await self.reader.readline()).decode("latin-1").strip()

    async def recipient(self, target: str) -> None:
        """From here on it is known whom this is for, and so what happens."""
        front = self.front
        self.target, self.number = target, front.journal.calls[target] + 1
        self.behaviour = behaviour_of(target, "smtp", seed=front.seed, faults=front.faults).for_call(self.number)
        if not await self.step("rcpt", self.behaviour, "250 2.1.5 recipient ok"):
            self.target = ""

    async def message(self) -> None:
        """DATA, the message, the final dot, and the answer to that."""
        if not await self.step("data", self.behaviour, "354 end with a dot"):
            return
        behaviour = self.behaviour
        if behaviour.answer.startswith("body-"):
            await self.reader.read(1)  # something of it came
            await self.record(phase="body", answer="")
            await self.end(behaviour.answer.removeprefix("body-"))
        raw = b""
        while (line := await self.reader.readuntil(b"\n")) != b".\r\n":
            raw += line.removeprefix(b".")
        receipt = f"s-{secrets.token_hex(6)}" if behaviour.accepts else ""
        word = behaviour.answer.removeprefix("dot-")
        if word == "no-receipt":
            receipt = "2.0.0 taken"  # all there is to quote
        answer = f"250 {receipt}" if word == "no-receipt" else _said(word) if word else f"250 2.0.0 Ok: queued as {receipt}"
        await self.record(phase="dot", answer=answer, raw=raw, receipt=receipt)
        await asyncio.sleep(self.front.delay + (SLOW if behaviour.slow else 0.0))
        if answer:
            await self.say(answer)
        self.target = ""
        await self.end(word)

    async def step(self, phase: str, behaviour: Behaviour, ordinary: str) -> bool:
        """One phase before the message: True when it goes on. What ends a call here is written down first."""
        step, _, word = behaviour.answer.partition("-")
        if step != phase:
            await self.say(ordinary)
            return True
        await self.record(phase=phase, answer=_said(word), name=behaviour.name)
        if behaviour.slow:
            await asyncio.sleep(SLOW)
        if said := _said(word):
            await self.say(said)
        await self.end(word)
        return False

    async def end(self, word: str) -> None:
        """Hang up where the word says so."""
        if word == "silent":
            await self.reader.read()
        if word == "reset":
            reset(self.writer)
        if word in ("silent", "reset", "garbage") or word.startswith("421") or word.endswith("drop"):
            raise HungUp

    async def record(self, *, phase: str, answer: str, raw: bytes = b"", receipt: str = "", name: str | None = None) -> None:
        """Write down one call, before it is answered."""
        content, keys = _content(raw)
        record = Record(
            "call", "smtp", self.target, self.behaviour.name if name is None else name, self.sender,
            marker=marker_in(content.get("text", ""), content.get("html", "")), filed=bool(receipt), receipt=receipt,
            number=self.number, keys=keys, content=content or None, note=phase, at=now(),
            answer=base64.b64encode(answer.encode()).decode(),
        )  # fmt: skip
        await self.front.journal.append(record)
        self.front.later(record)


def _said(word: str) -> str:
    """The reply that a word of a behaviour stands for; none where nothing is said."""
    code = re.match(r"[45]\d\d", word)
    if code:
        return f"{code[0]} {code[0][0]}.0.0 as told"
    return "\x00\xff?? as told" if word == "garbage" else ""


def _content(raw: bytes) -> tuple[dict[str, Any], list[str]]:
    """A letter's parts, and the names under which it may be looked up."""
    if not raw:
        return {}, []
    mail = message_from_bytes(raw, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    content = {"subject": str(mail["Subject"] or ""), "text": _part(mail, "plain"), "html": _part(mail, "html")}
    keys = [str(mail[name]).strip() for name in ("Message-ID", "X-Signoff-Key") if mail[name]]
    return content, keys


def _part(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    try:
        return str(part.get_content()).replace("\r\n", "\n") if part else ""
    except (LookupError, ValueError):
        return ""


def _address(rest: str) -> str:
    """The address between the angle brackets of MAIL and RCPT."""
    return rest.partition("<")[2].partition(">")[0]


def _plain(text: str) -> str:
    with contextlib.suppress(ValueError):
        return base64.b64decode(text).decode("utf-8", "replace")
    return ""
