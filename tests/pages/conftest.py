"""Browsers of the cast, and the pages they look at."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests import world


@pytest.fixture
def alice(db: None) -> Client:
    """Alice's browser."""
    return world.signed_in(world.alice())


@pytest.fixture
def bob(db: None) -> Client:
    """Bob's browser."""
    return world.signed_in(world.bob())


@pytest.fixture
def charlie(db: None) -> Client:
    """Charlie's browser: another workspace's reviewer."""
    return world.signed_in(world.charlie())


@pytest.fixture
def dana(db: None) -> Client:
    """Dana's browser."""
    return world.signed_in(world.dana())


@pytest.fixture
def ed(db: None) -> Client:
    """Ed's browser."""
    return world.signed_in(world.ed())


@pytest.fixture
def queries_of(db: None) -> Callable[[Client, str], int]:
    """How many queries one page takes."""

    def count(browser: Client, address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            answer = browser.get(address)
            assert answer.status_code == 200
        return len(captured)

    return count
