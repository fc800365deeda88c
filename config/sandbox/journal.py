"""What the sandbox saw and did: one JSON line for each call and look-up, on the disk before it answers.

A delivery is a call that was filed, or the answer that completed one. Deliveries are counted by recipient and by the marker in the
body (`marker: SOMETHING`), never by a key of Signoff's: this file is the truth that a ledger is held against.
"""

import asyncio
import json
import os
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MARKER = re.compile(r"\bmarker:\s?([\w.-]+)")


@dataclass
class Record:
    """One line. `keys` are the names under which a look-up may ask for this call."""

    what: str  # call, answer (to a challenge) or look-up
    front: str  # http or smtp
    target: str
    name: str = ""  # of the behaviour
    account: str = ""  # whose: the `account` in the address, or the sender's address
    marker: str = ""
    filed: bool = False
    receipt: str = ""
    number: int = 0  # of the call, for this target
    keys: list[str] = field(default_factory=list)
    attempt: int | None = None
    content: dict[str, Any] | None = None
    answer: str = ""  # the bytes as they were to be written, base64
    note: str = ""
    at: float = 0.0  # seconds since 1970, when the call was whole


class Journal:
    """The lines in order, and what is counted from them; reads what an earlier process wrote."""

    def __init__(self, path: Path) -> None:
        self.calls: Counter[str] = Counter()  # by target
        self.deliveries: Counter[str] = Counter()  # by recipient
        self.by_marker: Counter[str] = Counter()
        self.by_key: dict[str, Record] = {}  # the call that was filed under this key, else the last one
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._waiting: list[tuple[Record, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._read(path)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    async def append(self, record: Record) -> None:
        """Come back when the record is on the disk; OSError when it is not."""
        self._count(record)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await asyncio.shield(written)

    def counts(self) -> dict[str, Any]:
        """The answer to "did everybody get exactly one?", from recipients and markers alone."""
        return {
            "calls": sum(self.calls.values()),
            "deliveries": sum(self.deliveries.values()),
            "recipients": len(self.deliveries),
            "twice": sorted(who for who, times in self.by_marker.items() if times > 1),
            "by_recipient": dict(self.deliveries),
            "by_marker": dict(self.by_marker),
        }

    async def _write(self) -> None:
        """Write all that wait, with one flush to the disk for all of them, until none waits."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            lines = b"".join(json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n" for record, _ in batch)
            try:
                await asyncio.to_thread(self._sync, lines)
            except OSError as error:
                for _, written in batch:
                    written.set_exception(error)
                continue
            for _, written in batch:
                written.set_result(None)

    def _sync(self, lines: bytes) -> None:
        rest = memoryview(lines)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def _read(self, path: Path) -> None:
        """Count what is there. A last line without its end was never answered, so it is taken off."""
        place = 0
        for record in read(path):
            self._count(record)
        with path.open("rb") as file:
            for line in file:
                place += len(line) if line.endswith(b"\n") else 0
        self._file.truncate(place)

    def _count(self, record: Record) -> None:
        if record.what == "look-up":
            return
        self.calls[record.target] += record.what == "call"
        if record.filed:
            self.deliveries[record.target] += 1
            if record.marker:
                self.by_marker[record.marker] += 1
        for key in record.keys:
            if key not in self.by_key or not self.by_key[key].filed:
                self.by_key[key] = record


def read(path: Path) -> list[Record]:
    """Every whole line of a journal, in order; nothing where there is no journal."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        return [Record(**json.loads(line)) for line in file if line.endswith(b"\n")]


def marker_in(*texts: str) -> str:
    """The first marker in these texts, or nothing."""
    for text in texts:
        if found := MARKER.search(text):
            return found[1]
    return ""


def now() -> float:
    """Seconds since 1970: the same clock as the database's on one machine."""
    return time.time()
