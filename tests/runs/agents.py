"""An agent at the API, in words: what it sends and what it gets back."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from accounts.models import Token
from approvals.models import Plan
from tests.world import a_token, an_agent


class Agent:
    """Talks to `/api/v1/` with a token; every answer is the response itself, with `.json()`."""

    def __init__(self, token: Token | None = None) -> None:
        self.token = token or a_token()
        self.client: Client = an_agent(self.token)

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(f"/api/v1/{path}", query_params=query)

    def post(self, path: str, body: Any = None, *, key: str | None = None, method: str = "post") -> HttpResponse:
        """A JSON body (none: an empty one), with an Idempotency-Key if told."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.raw(path, data, "application/json", key=key, method=method)

    def raw(
        self, path: str, data: bytes, content_type: str = "application/x-ndjson", *, key: str | None = None, method: str = "post"
    ) -> HttpResponse:
        headers = {} if key is None else {"Idempotency-Key": key}
        return getattr(self.client, method)(f"/api/v1/{path}", data=data, content_type=content_type, headers=headers)

    def starts_a_run(self, **told: Any) -> int:
        answer = self.post("runs", {"agent": "mailer", "event_id": "spring-sale"} | told)
        assert answer.status_code == 201, answer.content
        return answer.json()["id"]

    def plan_words(self, **told: Any) -> dict[str, Any]:
        """The body of `POST plans`."""
        words = {"title": "Spring sale", "tool": "send_email", "channel": "letters", "event_id": "spring-sale"}
        return words | ({} if "run_id" in told else {"run_id": self.starts_a_run()}) | told

    def opens_a_plan(self, **told: Any) -> Plan:
        answer = self.post("plans", self.plan_words(**told))
        assert answer.status_code == 201, answer.content
        return Plan.objects.get(pk=answer.json()["id"])


def letters(count: int) -> bytes:
    """NDJSON with this many letters."""
    lines = (
        {"target": f"customer{n}@example.com", "subject": "Good news", "text": f"Dear customer {n}, it has left the house."}
        for n in range(1, count + 1)
    )
    return "\n".join(map(json.dumps, lines)).encode()


def told(answer: HttpResponse) -> dict[str, str]:
    """What a problem says of each field."""
    assert answer["Content-Type"] == "application/problem+json"
    return {error["field"]: error["error"] for error in answer.json()["errors"]}
