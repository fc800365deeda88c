"""What the mailbox has taken: one JSON line for each message, on the disk before it is acknowledged."""

import asyncio
import base64
import json
import os
import secrets
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One message as the lists show it; `place` is where its line begins in the journal."""

    id: str
    received_at: str
    sender: str
    recipients: tuple[str, ...]
    message_id: str
    subject: str
    place: int


class Journal:
    """The messages in the order they came, counted by envelope recipient, never by what they say."""

    def __init__(self, path: Path) -> None:
        self.entries: list[Entry] = []
        self.by_id: dict[str, Entry] = {}
        self.by_message_id: dict[str, Entry] = {}
        self.by_recipient: Counter[str] = Counter()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("ab", buffering=0)  # no buffer that could hold on to what a full disk refused
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[Entry]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._read()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    async def append(self, sender: str, recipients: list[str], raw: bytes) -> Entry:
        """The entry of a message that is on the disk by the time this comes back; OSError when it is not."""
        record = {
            "id": secrets.token_hex(6).upper(),
            "received_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "sender": sender,
            "recipients": recipients,
            **_headers(raw),
            **_as_json(raw),
        }
        future: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, future))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await asyncio.shield(future)

    def message(self, entry: Entry) -> EmailMessage:
        """The whole message again, from the journal."""
        with self.path.open("rb") as file:
            file.seek(entry.place)
            record = json.loads(file.readline())
        raw = base64.b64decode(record["base64"]) if "base64" in record else record["text"].encode()
        message = message_from_bytes(raw, policy=policy.default)
        assert isinstance(message, EmailMessage)
        return message

    async def _write(self) -> None:
        """Write all that wait, with one flush to the disk for all of them, until none waits."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            lines = [json.dumps(record, ensure_ascii=False).encode() + b"\n" for record, _ in batch]
            place = self._file.seek(0, os.SEEK_END)
            try:
                await asyncio.to_thread(self._sync, b"".join(lines))
            except OSError as error:
                self._file.truncate(place)
                for _, future in batch:
                    future.set_exception(error)
                continue
            for (record, future), line in zip(batch, lines, strict=True):
                future.set_result(self._count(record, place))
                place += len(line)

    def _sync(self, lines: bytes) -> None:
        rest = memoryview(lines)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        """Count what is there. A last line without its end was never acknowledged, so it is taken off."""
        place = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._count(json.loads(line), place)
                place += len(line)
        self._file.truncate(place)

    def _count(self, record: dict[str, Any], place: int) -> Entry:
        entry = Entry(
            record["id"],
            record["received_at"],
            record["sender"],
            tuple(record["recipients"]),
            record["message_id"],
            record["subject"],
            place,
        )
        self.entries.append(entry)
        self.by_id[entry.id] = entry
        self.by_message_id.setdefault(entry.message_id, entry)
        self.by_recipient.update(entry.recipients)
        return entry

    def counts(self) -> dict[str, Any]:
        """The answer to "did every recipient get exactly one?", from the envelopes alone."""
        return {
            "messages": len(self.entries),
            "recipients": len(self.by_recipient),
            "twice": sorted(who for who, times in self.by_recipient.items() if times > 1),
            "by_recipient": dict(self.by_recipient),
        }


def as_dict(entry: Entry) -> dict[str, Any]:
    """The entry as the look-up answers it."""
    known = asdict(entry)
    return {
        "to": ", ".join(entry.recipients),
        **{name: known[name] for name in ("id", "message_id", "received_at")},
    }


def _headers(raw: bytes) -> dict[str, str]:
    """The two headers the lists need; whatever a client sends, this does not raise."""
    # The old policy keeps a header as it is, where the new one may stumble over a malformed one.
    head = message_from_bytes(raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n", policy=policy.compat32)
    found = {
        "message_id": str(head.get("Message-ID", "")).strip(),
        "subject": _decoded(str(head.get("Subject", ""))),
    }
    return {name: text.encode(errors="replace").decode() for name, text in found.items()}


def _decoded(subject: str) -> str:
    try:
        return str(policy.default.header_factory("subject", subject))
    except Exception:  # a malformed header is shown as it came
        return subject


def _as_json(raw: bytes) -> dict[str, str]:
    """The message as readable text where it is text, so that the journal can be read with any tool."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
