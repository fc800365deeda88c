"""The story as `make demo` tells it: real processes, a real SIGKILL after the fortieth delivery, real commits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.crashes
def test_a_hundred_letters_and_a_crash_after_the_fortieth() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    told = subprocess.run(
        [sys.executable, "-m", "config.demo"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "was killed (SIGKILL)" in told.stdout
    mailbox, ledger = (line.split() for line in told.stdout.splitlines() if line.startswith(("mailbox ", "ledger ")))
    assert mailbox[1:5] == ["100", "100", "0", "0"]
    assert ledger[1:3] == ["100", "100"]
