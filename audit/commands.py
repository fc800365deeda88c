"""What every command of ours has in common: it finds its workspace, refuses in one sentence, and acts under one name."""

from django.core.management.base import CommandError

from accounts.models import User, Workspace
from audit.chain import Actor

COMMAND_LINE = Actor("command", None, "manage.py")


def workspace_called(slug: str) -> Workspace:
    """The workspace, or a CommandError that names it."""
    try:
        return Workspace.objects.get(slug=slug)
    except Workspace.DoesNotExist:
        raise CommandError(f"there is no workspace {slug!r}: make it with `manage.py workspace add {slug}`") from None


def person_called(email: str) -> User:
    """The person, or a CommandError that names them."""
    user = User.objects.filter(email__iexact=email).first()
    if user is None:
        raise CommandError(f"nobody has the address {email!r}: add them with `manage.py member add {email} …`")
    return user
