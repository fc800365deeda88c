"""What the sandbox tells later: a target's tag may begin with it, as in `accepted-reset.absent+delivered@…` or `ada+bounced-7@…`.

It is told once for each call, a second after it, signed with the secret of the channel; a Signoff that is not there is not told again.
"""

import asyncio
import json
import re
import secrets
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from config.sandbox.journal import Journal, Record, now
from effects.signatures import read_secrets, sign

LATER = 1.0  # seconds after the call
TAG = re.compile(r"[^+@]*\+(delivered|bounced|rejected)(?:-[^@]*)?(?:@.*)?")


@dataclass
class Caller:
    """Calls back at one address, with one secret; none: nothing is told. What it told is in the journal."""

    journal: Journal
    address: str = ""
    secret: str = ""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __call__(self, record: Record) -> None:
        """Tell later what the target of this call asks for, if anything."""
        body = told_of(record)
        if self.address and body:
            task = asyncio.ensure_future(self._tell(record, body))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, record: Record, body: dict[str, Any]) -> None:
        await asyncio.sleep(LATER)
        status = await asyncio.to_thread(self._post, json.dumps(body).encode())
        await self.journal.append(
            Record("callback", record.front, record.target, body["type"], receipt=record.receipt, note=status, at=now())
        )

    def _post(self, body: bytes) -> str:
        event, timestamp = f"evt-{secrets.token_hex(8)}", str(int(time.time()))
        headers = {
            "webhook-id": event,
            "webhook-timestamp": timestamp,
            "webhook-signature": sign(event, timestamp, body, read_secrets(self.secret)[0]),
            "content-type": "application/json",
        }
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address, body, headers), timeout=10) as answer:
                return str(answer.status)
        except urllib.error.HTTPError as error:
            return str(error.code)
        except OSError as error:
            return f"not told: {error}"


def told_of(record: Record) -> dict[str, Any] | None:
    """The body of the callback that this call's target asks for; none where it asks for none, or named no key of Signoff's."""
    asked = TAG.fullmatch(record.target)
    key, colon, epoch = next((key for key in reversed(record.keys) if not key.startswith("<")), "").rpartition(":")
    if not asked or not colon or not epoch.isdecimal():
        return None
    body = {
        "type": asked[1],
        "key": key,
        "epoch": int(epoch),
        "receipt": record.receipt,
        "reason": "as told by the target's name",
    }
    return body | ({"attempt": record.attempt} if record.attempt else {})
