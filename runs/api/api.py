"""The agent API, version 1: `/api/v1/`. A token may propose, read and withdraw; nothing here can decide."""

from typing import Any, NoReturn

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from ninja import NinjaAPI, Router, Swagger

from runs.api import effects, plans, problems, runs
from runs.api.auth import Bearer

ABOUT = """
An agent proposes a plan: finished text, one row per recipient. People decide on it in the browser; workers send what was
approved, each target exactly once. This API can propose, read and withdraw.

Every POST takes an `Idempotency-Key`: repeated with the same body, it gets the first answer again. Errors are
`application/problem+json` with a `code`.
"""


class AgentAPI(NinjaAPI):
    """Ninja, but an address called with the wrong method answers with a problem, as every other error does."""

    def _get_urls(self) -> list[Any]:
        patterns = super()._get_urls()
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = _telling(pattern.callback)
        return patterns


def _telling(view: Any) -> Any:
    def told(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        problem = problems.answer(problems.Problem(405, "method_not_allowed", f"Use {response['Allow']} here."))
        problem["Allow"] = response["Allow"]
        return problem

    told.csrf_exempt = getattr(view, "csrf_exempt", False)  # type: ignore[attr-defined]
    return told


elsewhere = Router()


@elsewhere.api_operation(["GET", "POST", "PUT", "PATCH", "DELETE"], "{path:rest}", include_in_schema=False)
def nothing_here(request: HttpRequest, rest: str) -> NoReturn:
    """Every other address."""
    raise Http404


api = AgentAPI(
    title="Signoff",
    version="1",
    description=ABOUT,
    urls_namespace="api",
    auth=Bearer(),
    docs=Swagger({"persistAuthorization": False, "defaultModelsExpandDepth": 0}),
)
api.add_router("runs", runs.router)
api.add_router("plans", plans.router)
api.add_router("effects", effects.router)
api.add_router("", elsewhere)
problems.register(api)
