"""`Idempotency-Key` on POSTs: a repeat gets the first answer again and does nothing (IETF draft, version 07).

The act and its stored answer are one transaction, so a crash leaves neither, and a repeat after it acts for the first time.
Who runs now is told by a lock that ends with that transaction. A key counts per token and address; answers are kept.
"""

import hashlib
import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from ninja.responses import NinjaJSONEncoder, Status

from runs.api.auth import AgentRequest
from runs.api.bodies import body_of
from runs.api.problems import Problem, problem_of
from runs.models import Answer

# A structured-field string, in quotes; or a bare one, which many clients send.
KEY = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"|([\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,255})')

type View = Callable[..., Any]


def once(view: View) -> View:
    """Let a POST honour its Idempotency-Key. Errors that the act itself raised are answers too, and kept; ours are not."""

    @wraps(view)
    def guarded(request: AgentRequest, **values: Any) -> Any:
        key = _key_of(request)
        if key is None:
            return view(request, **values)
        with transaction.atomic():
            return _answered(request, key, view, values)

    return guarded


def _answered(request: AgentRequest, key: str, view: View, values: dict[str, Any]) -> HttpResponse:
    route = f"{request.method} {request.path}"
    _claim(request.auth.pk, route, key)
    kept = Answer.objects.filter(token=request.auth, route=route, key=key).first()
    if kept is not None:
        if kept.body_digest != _digest(request):
            raise Problem(422, "idempotency_key_reused", "Use a new key for a new request.")
        return _again(kept.status or 200, kept.body)
    status, body = _acted(request, view, values)
    Answer.objects.create(token=request.auth, route=route, key=key, body_digest=_digest(request), status=status, body=body)
    return _again(status, body)


def _claim(token_id: int, route: str, key: str) -> None:
    """Hold the key until the transaction ends, or say that somebody holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 7301))", [json.dumps([token_id, route, key])])
        if not cursor.fetchone()[0]:
            raise Problem(409, "idempotency_key_running", "Wait for the first request to end, then ask again.")


def _acted(request: AgentRequest, view: View, values: dict[str, Any]) -> tuple[int, Any]:
    try:
        with transaction.atomic():
            result = view(request, **values)
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            raise
        return problem.status, problem.body
    status, body = (result.status_code, result.value) if isinstance(result, Status) else (200, result)
    return status, json.loads(json.dumps(body, cls=NinjaJSONEncoder))


def _again(status: int, body: Any) -> HttpResponse:
    if status >= 400:
        return HttpResponse(json.dumps(body), status=status, content_type="application/problem+json")
    return HttpResponse(json.dumps(body), status=status, content_type="application/json; charset=utf-8")


def _digest(request: AgentRequest) -> str:
    # Where a body was parsed, Django holds it; all others are read in pieces, and hashed on their way.
    return hashlib.sha256(request.body).hexdigest() if hasattr(request, "_body") else body_of(request).digest()


def _key_of(request: HttpRequest) -> str | None:
    header = request.headers.get("Idempotency-Key")
    if header is None:
        return None
    found = KEY.fullmatch(header.strip())
    if found is None:
        raise Problem(
            400, "idempotency_key_malformed", "Send 1 to 255 visible ASCII characters, in double quotes as the draft says."
        )
    return re.sub(r"\\(.)", r"\1", found[1]) if found[1] is not None else found[2]
