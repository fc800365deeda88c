"""Fixtures for every test. The database and Redis come from `tests.services`."""

import pytest


@pytest.fixture(autouse=True)
def quick_passwords(settings: object) -> None:
    """Passwords are hashed for strength in production; here for speed."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # type: ignore[attr-defined]
