"""Every error of the API in one shape (RFC 9457): `application/problem+json` with `code`, `title` and `detail`.

Where fields are at fault, `errors` are `[{field, error}]` or `[{line, field, error}]`. A `code` never changes its meaning.
"""

import json
import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from accounts.errors import LostRace, Refused
from approvals.intake import RowsRefused
from approvals.plans import NotYours
from runs.recording import ReplayRefused

log = logging.getLogger(__name__)

TITLES = {
    "malformed": "The request cannot be read",
    "unauthorized": "A valid token is needed",
    "forbidden": "This token may not do that",
    "not_found": "There is no such thing in this workspace",
    "method_not_allowed": "This address does not take that method",
    "length_required": "The length of the request must be told",
    "too_large": "The request is too large",
    "unsupported_media_type": "The content type is not one that is read here",
    "invalid": "Some fields do not fit",
    "rows_refused": "Some rows do not fit, so none was kept",
    "refused": "The act is refused as asked",
    "conflict": "Somebody was first, or the state has changed",
    "tools_executed": "The run called tools, so it is not replayed",
    "tools_unknown": "Nobody recorded which tools the run called, so it is not replayed",
    "in_flight": "The run is still in flight, so it is not replayed",
    "idempotency_key_malformed": "The Idempotency-Key cannot be read",
    "idempotency_key_running": "The first request with this Idempotency-Key is still running",
    "idempotency_key_reused": "This Idempotency-Key came with another body before",
    "internal": "Something broke on our side",
}
CODE_OF_STATUS = {
    400: "malformed", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 413: "too_large",
    415: "unsupported_media_type", 422: "invalid",
}  # fmt: skip


class Problem(Exception):
    """An answer that is no success. `more` are further members of the body."""

    def __init__(self, status: int, code: str, detail: str, errors: list[dict[str, Any]] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.body: dict[str, Any] = {"status": status, "code": code, "title": TITLES[code], "detail": detail}
        self.body |= {"errors": errors} if errors is not None else {}
        self.body |= more


def not_found(what: str) -> Problem:
    """404: also for what exists in somebody else's workspace."""
    return Problem(404, "not_found", f"There is no {what} with this id in your workspace.")


def problem_of(error: Exception) -> Problem | None:
    """What an error means to the agent; none when it is a fault of ours."""
    match error:
        case Problem():
            return error
        case RowsRefused():
            errors = [{"line": one.line, "field": one.field, "error": one.error} for one in error.errors]
            return Problem(422, "rows_refused", f"{error}.", errors, count=error.count)
        case ReplayRefused():
            code = "in_flight" if error.in_flight else "tools_executed" if error.tools else "tools_unknown"
            return Problem(409, code, str(error), tools=error.tools)
        case NotYours():
            return Problem(403, "forbidden", str(error))
        case LostRace():
            return Problem(409, "conflict", str(error), state=getattr(error.current, "state", None))
        case Refused():
            return Problem(422, "refused", str(error))
        case ValidationError():
            return Problem(422, "invalid", "See errors.", [_field_error(one) for one in error.errors])
        case AuthenticationError():
            return Problem(401, "unauthorized", "Send `Authorization: Bearer sgn_…` with a token that is valid now.")
        case RequestDataTooBig():
            return Problem(413, "too_large", "This address takes at most a megabyte.")
        case UnreadablePostError():
            return Problem(400, "malformed", "The request broke off before its end.")
        case Http404():
            return Problem(404, "not_found", "There is nothing at this address.")
        case HttpError():
            return Problem(error.status_code, CODE_OF_STATUS.get(error.status_code, "malformed"), str(error))
    return None


def answer(problem: Problem) -> HttpResponse:
    """The response that carries a problem."""
    response = HttpResponse(json.dumps(problem.body), status=problem.status, content_type="application/problem+json")
    if problem.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="signoff"'
    return response


def register(api: NinjaAPI) -> None:
    """Let every error of this API leave as a problem; ours are logged and told without particulars."""

    def tell(request: HttpRequest, error: Any) -> HttpResponse:
        problem = problem_of(error)
        if problem is None:
            log.error("%s %s failed", request.method, request.path, exc_info=error)
            problem = Problem(500, "internal", "Try again; with the same Idempotency-Key nothing happens twice.")
        return answer(problem)

    for kind in (Exception, HttpError, ValidationError, Http404):
        api.add_exception_handler(kind, tell)


def _field_error(error: dict[str, Any]) -> dict[str, str]:
    """`loc` is (source, parameter, field …): of a body, only the path inside it is the agent's own word."""
    source, *path = error["loc"]
    inside = path[1:] if source == "body" else path
    known = {"extra_forbidden": "is not a field of this request", "missing": "is missing"}
    said = known.get(error["type"], error["msg"].removeprefix("Value error, "))
    return {"field": ".".join(map(str, inside)), "error": said}
