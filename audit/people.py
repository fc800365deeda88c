"""Changes to who is who, each with its entry in the record: a workspace, a member, a token added from the command line."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email, validate_slug
from django.db import transaction

from accounts import tokens
from accounts.errors import Refused
from accounts.models import Membership, Token, User, Workspace
from accounts.roles import Role
from audit import chain
from audit.chain import Actor

# First parts of our own addresses.
RESERVED = frozenset({"accounts", "admin", "api", "callbacks", "healthz", "readyz", "static", "theme"})


@transaction.atomic
def add_workspace(slug: str, *, name: str, by: Actor) -> Workspace:
    """A new workspace. Raises Refused when the slug is taken or is none."""
    try:
        validate_slug(slug)
    except ValidationError:
        raise Refused(f"{slug!r} is no slug: use letters, digits, hyphens and underscores") from None
    if slug.lower() in RESERVED:
        raise Refused(f"{slug!r} is the beginning of an address of Signoff's own: choose another")
    if Workspace.objects.filter(slug=slug).exists():
        raise Refused(f"there is a workspace {slug!r} already")
    workspace = Workspace.objects.create(slug=slug, name=name or slug.replace("-", " ").title())
    chain.append("workspace added", workspace_id=workspace.pk, by=by, on=("workspace", workspace.pk, slug))
    return workspace


@transaction.atomic
def add_member(workspace: Workspace, email: str, *, role: str, name: str, password: str, by: Actor) -> Membership:
    """A person with a role; a person who is new gets this password. Raises Refused, naming what is wrong.

    Somebody who has an account elsewhere keeps their password.
    """
    if role not in list(Role):
        raise Refused(f"role must be one of {', '.join(Role)}, not {role!r}")
    try:
        validate_email(email)
    except ValidationError:
        raise Refused(f"{email!r} is not an e-mail address") from None
    user = User.objects.filter(email__iexact=email).first()
    if user is None:
        user = User(email=email.lower(), name=name)
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise Refused(" ".join(error.messages)) from None
        user = User.objects.create_user(email, password, name=name)
    if Membership.objects.filter(workspace=workspace, user=user).exists():
        raise Refused(f"{user.email} is a member of {workspace.slug} already")
    membership = Membership.objects.create(workspace=workspace, user=user, role=role)
    chain.append(
        "member added",
        workspace_id=workspace.pk,
        by=by,
        on=("member", user.pk, user.email),
        after={"role": role, "name": user.name},
    )
    return membership


@transaction.atomic
def add_token(workspace: Workspace, *, name: str, owner: User, by: Actor) -> tuple[Token, str]:
    """A token for an agent, and its text. Raises Refused."""
    try:
        token, secret = tokens.issue(workspace, name=name, owner=owner)
    except tokens.TokenRefused as refusal:
        raise Refused(str(refusal)) from None
    chain.append(
        "token added",
        workspace_id=workspace.pk,
        by=by,
        on=("token", token.pk, token.name),
        after={"owner": owner.email, "prefix": token.prefix},
    )
    return token, secret
