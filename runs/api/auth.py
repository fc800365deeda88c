"""Who calls: the token in `Authorization: Bearer sgn_…`. Its workspace is all that the call can see."""

from django.http import HttpRequest
from ninja.security import HttpBearer

from accounts import tokens
from accounts.models import Token


class AgentRequest(HttpRequest):
    """A request that has passed the door; `auth` is its token."""

    auth: Token


class Bearer(HttpBearer):
    """Lets valid tokens in; expired, revoked and unknown ones get 401, all alike."""

    def authenticate(self, request: HttpRequest, token: str) -> Token | None:
        return tokens.read(token)
