"""Tokens of agents: issued once, read at every request, never shown again."""

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Membership, Token, User, Workspace, digest_of, new_secret


class TokenRefused(Exception):
    """A token cannot be issued as asked; the message says why."""


@transaction.atomic
def issue(workspace: Workspace, *, name: str, owner: User) -> tuple[Token, str]:
    """A new token and its text, which is shown once and kept nowhere. `owner` answers for what it does.

    Raises TokenRefused when the owner is not in the workspace, or the name is taken.
    """
    if not name.strip():
        raise TokenRefused("a token needs a name")
    if not Membership.objects.filter(workspace=workspace, user=owner, user__is_active=True).exists():
        raise TokenRefused(f"{owner.email} is not a member of {workspace.slug}, so they cannot answer for a token there")
    secret = new_secret()
    try:
        with transaction.atomic():
            token = Token.objects.create(
                workspace=workspace, name=name.strip(), owner=owner, digest=digest_of(secret), prefix=secret[:12]
            )
    except IntegrityError:
        raise TokenRefused(f"there is a token called {name!r} in {workspace.slug} already") from None
    return token, secret


def read(secret: str) -> Token | None:
    """The token with this text, if it is valid now; none otherwise. Notes its use, at most once a minute."""
    valid = Token.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=Now()), digest=digest_of(secret), revoked_at=None, owner__is_active=True
    )
    token = valid.select_related("workspace", "owner").first()
    if token is not None:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=Now() - timedelta(minutes=1))
        Token.objects.filter(stale, pk=token.pk).update(last_used_at=Now())
    return token
