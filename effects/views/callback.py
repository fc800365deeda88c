"""The door for providers that call back: `POST /callbacks/{workspace}/{channel}/`. It verifies and keeps; the sweeper applies.

Who may not come in learns nothing: no such workspace, no such channel, a channel that takes no callbacks and a wrong signature are
one answer.
"""

import json
import logging
import re
import secrets
import time
from typing import Any

from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from effects import callbacks
from effects.channels import callback_keys
from effects.models import Channel
from effects.signatures import is_signed, is_timely

log = logging.getLogger(__name__)

LARGEST = 64 * 1024  # bytes of a body
EVENT_ID = re.compile(r"[\x21-\x7e]{1,200}")
NOBODY = secrets.token_bytes(32)  # compared with where there is no key, so that a stranger waits as long; nobody can sign with it
TITLES = {
    "malformed": "The callback cannot be read",
    "unauthorized": "The callback is not signed as this channel expects, or not in time",
    "not_found": "No effect of this channel is meant",
    "method_not_allowed": "This address takes POST",
    "conflict": "This event was kept before, with another body",
    "too_large": "The callback is too large",
    "too_many": "This effect has as many callbacks as one may have",
}


@csrf_exempt  # no browser comes here and no cookie counts: the signature is the proof of who calls
def callback(request: HttpRequest, workspace: str, channel: str) -> HttpResponse:
    """Keep one signed callback: 202 when it is new, 200 when it is known; anything else is a problem, and nothing is kept."""
    if request.method != "POST":
        answer = _problem(405, "method_not_allowed", "Use POST here.")
        answer["Allow"] = "POST"
        return answer
    try:
        raw = _body(request)
    except UnreadablePostError:
        return _problem(400, "malformed", "The request broke off before its end.")
    if raw is None:
        return _problem(413, "too_large", f"A callback takes at most {LARGEST:,} bytes.")
    event_id = request.headers.get("webhook-id", "")
    timestamp = request.headers.get("webhook-timestamp", "")
    if not is_timely(timestamp, now=time.time()):
        return _problem(401, "unauthorized", "webhook-timestamp must be seconds since 1970, within five minutes of our clock.")
    found, keys = _channel(workspace, channel)
    signatures = request.headers.get("webhook-signature", "")
    signed = is_signed(signatures, event_id=event_id, timestamp=timestamp, body=raw, keys=keys or [NOBODY])
    if found is None or not keys or not signed:
        return _problem(
            401, "unauthorized", "Sign webhook-id, webhook-timestamp and the body with the channel's callback_secret."
        )
    if not EVENT_ID.fullmatch(event_id):
        return _problem(400, "malformed", "webhook-id must be 1 to 200 visible ASCII characters without a blank.")
    return _keep(found, event_id, raw)


def _keep(channel: Channel, event_id: str, raw: bytes) -> HttpResponse:
    try:
        kept = callbacks.keep(channel, event_id=event_id, told=callbacks.read(raw), raw=raw)
    except callbacks.Malformed as bad:
        return _problem(400, "malformed", "See errors.", errors=bad.errors)
    except callbacks.NotOurs:
        return _problem(404, "not_found", "This channel has no effect with this key, epoch and attempt. Nothing was kept.")
    except callbacks.Differs:
        return _problem(409, "conflict", "Give every event a webhook-id of its own.")
    except callbacks.TooMany:
        return _problem(409, "too_many", f"One effect takes at most {callbacks.MOST} callbacks. Nothing was kept.")
    return _answer(200 if kept.again else 202, {"id": kept.id, "again": kept.again})


def _body(request: HttpRequest) -> bytes | None:
    """The body as it came; none when it is too large, told before a byte of it is read."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > LARGEST:
        return None
    return request.body


def _channel(workspace: str, slug: str) -> tuple[Channel | None, list[bytes]]:
    found = Channel.objects.filter(workspace__slug=workspace, slug=slug).first()
    if found is None:
        return None, []
    try:
        return found, callback_keys(found)
    except ValueError:  # sealed with a key that is gone: for the log, not for whoever knocks
        log.exception("the secrets of channel %s cannot be opened, so its callbacks are turned away", found.pk)
        return found, []


def _problem(status: int, code: str, detail: str, **more: Any) -> HttpResponse:
    body = {"status": status, "code": code, "title": TITLES[code], "detail": detail} | more
    return _answer(status, body, content_type="application/problem+json")


def _answer(status: int, body: dict[str, Any], content_type: str = "application/json") -> HttpResponse:
    answer = HttpResponse(json.dumps(body), status=status, content_type=content_type)
    answer["Cache-Control"] = "no-store"
    return answer
