"""Providers that call back, signed or not quite: what they send, and what is kept of it."""

import base64
import json
import time
from typing import Any

from django.http import HttpResponse
from django.test import Client

from effects.models import Callback, Channel, Effect
from effects.secrets import seal
from effects.signatures import read_secrets, sign

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()


def takes_callbacks(channel: Channel, secret: str = SECRET) -> Channel:
    """The channel, with this `callback_secret`."""
    channel.secrets = seal({"callback_secret": secret})
    channel.save()
    return channel


def body_about(effect: Effect, kind: str = "delivered", **fields: Any) -> dict[str, Any]:
    """What a provider says of this effect."""
    return {"type": kind, "key": effect.key, "epoch": effect.epoch, "attempt": effect.attempt} | fields


def calls_back(
    body: dict[str, Any] | bytes,
    *,
    event: str = "ev-1",
    secret: str = SECRET,
    ago: float = 0,
    to: str = "acme/letters",
    signature: str | None = None,
    sent: bytes | None = None,
) -> HttpResponse:
    """One callback, signed with `secret` as of `ago` seconds; `sent` goes out instead of what was signed."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    timestamp = str(int(time.time() - ago))
    headers = {
        "webhook-id": event,
        "webhook-timestamp": timestamp,
        "webhook-signature": sign(event, timestamp, raw, read_secrets(secret)[0]) if signature is None else signature,
    }
    browser = Client(enforce_csrf_checks=True, headers=headers)
    return browser.post(f"/callbacks/{to}/", raw if sent is None else sent, content_type="application/json")


def kept(effect: Effect, kind: str, **fields: Any) -> Callback:
    """A callback that was kept, and that nobody has applied."""
    number = Callback.objects.count() + 1
    told: dict[str, Any] = {"event_id": f"event-{number}", "exact": True, "receipt": "", "reason": "", "raw": b"{}"} | fields
    return Callback.objects.create(
        workspace_id=effect.workspace_id, channel_id=effect.channel_id, effect=effect, kind=kind, **told
    )
