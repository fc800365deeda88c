"""The demo's two visitors over real HTTP: an agent with its token, and a person with a browser's cookies and forms."""

import html
import http.cookiejar
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any


class Refusal(Exception):
    """The other side said no; the message is what it said."""


class Agent:
    """A program with a token. It may propose and read; it decides nothing."""

    def __init__(self, address: str, token: str) -> None:
        self._base = address.rstrip("/") + "/api/v1/"
        self._token = token

    def get(self, path: str) -> Any:
        """The JSON at `path`."""
        return self._ask(path, None, "")

    def post(self, path: str, body: dict[str, Any] | bytes | None = None, *, kind: str = "application/json") -> Any:
        """The JSON answer to a POST of JSON, or of a file of this kind."""
        return self._ask(path, body if isinstance(body, bytes) else json.dumps(body or {}).encode(), kind)

    def propose(self, letters: bytes, *, title: str, event_id: str) -> int:
        """A run that proposes one plan of letters from a CSV file, and finishes; gives the plan's id."""
        run = self.post("runs", {"agent": "bookshop agent", "event_id": event_id})
        plan = self.post(
            "plans",
            {
                "run_id": run["id"],
                "title": title,
                "tool": "send_email",
                "channel": "letters",
                "event_id": event_id,
                "rationale": "These customers bought the earlier edition. Each letter names their order and their book, "
                "and offers a copy put aside until Saturday.",
            },
        )
        self.post(f"plans/{plan['id']}/rows", letters, kind="text/csv")
        self.post(f"plans/{plan['id']}/submit")
        self.post(f"runs/{run['id']}/finish")
        return int(plan["id"])

    def _ask(self, path: str, body: bytes | None, kind: str) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} | ({"Content-Type": kind} if body is not None else {})
        request = urllib.request.Request(self._base + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refusal(f"{path}: {error.code} {error.read().decode(errors='replace')[:2000]}") from None


class Person:
    """Somebody who signs in and fills in forms, as a browser without scripts does."""

    def __init__(self, address: str, email: str, password: str) -> None:
        self._base = address.rstrip("/")
        self._open = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar(_FriendlyToLocalhost()))
        ).open
        self.submit("/accounts/login/", {"login": email, "password": password})
        if "/accounts/login/" in self.at:
            raise Refusal(f"{email} could not sign in")

    def visit(self, path: str) -> str:
        """The page at `path`."""
        return self._fetch(path, None)

    def submit(self, path: str, fields: dict[str, str], *, page: str | None = None) -> str:
        """POST a form to `path`, with the token from the page it stands on; gives the page that follows."""
        token = field(self.visit(page or path), "csrfmiddlewaretoken")
        return self._fetch(path, urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": token}).encode())

    def _fetch(self, path: str, body: bytes | None) -> str:
        request = urllib.request.Request(self._base + path, body, {"Referer": self._base + path})
        try:
            with self._open(request, timeout=60) as answer:
                self.at = answer.url
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            text = re.sub(r"<[^>]+>|\s+", " ", error.read().decode(errors="replace"))
            raise Refusal(f"{path}: {error.code} {text[:1500]}") from None


class _FriendlyToLocalhost(http.cookiejar.DefaultCookiePolicy):
    """Cookies of a host without a dot are sent back to it."""

    def return_ok_domain(self, cookie: http.cookiejar.Cookie, request: urllib.request.Request) -> bool:
        return True


def field(page: str, name: str) -> str:
    """The value of the first field called `name` in a page. Raises Refusal when there is none."""
    for tag in re.findall(r"<input\b[^>]*>", page):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if attributes.get("name") == name:
            return html.unescape(attributes.get("value", ""))
    raise Refusal(f"the page has no field {name!r}")
