"""Fixtures for every test. The database and Redis come from `tests.services`."""

import os

import pytest


@pytest.fixture(autouse=True)
def quick_passwords(settings: object) -> None:
    """Passwords are hashed for strength in production; here for speed."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # type: ignore[attr-defined]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: with several processes at work none is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("crashes") is None)


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, since many tests wait for something; four at most, for each has a database of its own."""
    return min(4, (os.cpu_count() or 1) + 1)
