"""People, workspaces, who is in which with what role, and the tokens of agents."""

import hashlib
import secrets
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower, Now

from accounts.roles import Role

PREFIX = "sgn_"  # what secret scanners look for


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """A new person; an empty password is one that nothing matches."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person. What they may do is in their memberships; nobody is a superuser."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=120, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    USERNAME_FIELD = "email"
    objects = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="one_person_per_address")]

    def __str__(self) -> str:
        return self.name or self.email


class Workspace(models.Model):
    """One tenant: nothing in one workspace is visible to, counted in or slowed by another."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=[(role.value, role.value) for role in Role])
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_role_per_person_and_workspace"),
            models.CheckConstraint(condition=models.Q(role__in=[role.value for role in Role]), name="role_is_one_we_know"),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"


class Token(models.Model):
    """An agent's credential: it may propose, read and withdraw. `owner` answers for its work (four eyes).

    The secret has 256 random bits, so a plain SHA-256 of it is safe to store; it is shown once.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_token_per_name")]

    def __str__(self) -> str:
        return self.name


def new_secret() -> str:
    """A fresh token text, for example `sgn_` and 43 characters."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What is stored of a token: the SHA-256 of its text, as 64 hex digits."""
    return hashlib.sha256(secret.encode()).hexdigest()
