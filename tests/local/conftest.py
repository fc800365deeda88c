"""Folders for real servers, and the sending of a mail, for the tests of the local start."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder that the servers' account can enter, which pytest's own folders are not when root runs them."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-test-", dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
