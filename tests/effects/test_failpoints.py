"""The failpoints themselves: off unless named, refused in production, and exact about where and when they act."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from effects import failpoints
from effects.failpoints import BadFailpoints, Tripped, arm, parse, reach

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm("")


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_nothing_happens_unless_one_is_named() -> None:
    arm("")
    for point in failpoints.POINTS:
        reach(point)


def test_it_acts_at_the_hit_that_was_named_and_at_no_other() -> None:
    arm("kept:raise@3")
    reach("kept")
    reach("keep")
    reach("kept")
    with pytest.raises(Tripped, match="kept"):
        reach("kept")
    reach("kept")


def test_it_acts_for_the_target_that_was_named_and_for_no_other() -> None:
    arm("calling=ada@example.com:raise, answered=bo@example.com:raise@2")
    reach("calling", of="bo@example.com")
    with pytest.raises(Tripped):
        reach("calling", of="ada@example.com")
    reach("answered", of="bo@example.com")
    with pytest.raises(Tripped):
        reach("answered", of="bo@example.com")


@pytest.mark.parametrize("text", ["nowhere:kill", "kept", "kept:explode", "kept:kill@0", "kept:kill@x", "kept:kill@3@4", ":kill"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadFailpoints):
        parse(text)


def test_kill_is_a_real_kill() -> None:
    done = python(
        "from effects import failpoints as f; f.arm('kept:kill@2'); f.reach('kept'); print(1, flush=True); f.reach('kept')"
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "1\n")


def test_it_is_refused_in_production() -> None:
    environment = {"DEBUG": "0", "ALLOWED_HOSTS": "signoff.example", "SIGNOFF_FAILPOINTS": "kept:kill"}
    refused = python("from django.conf import settings; settings.DEBUG", **environment)
    assert refused.returncode != 0
    assert "SIGNOFF_FAILPOINTS is set" in refused.stderr.splitlines()[-1]
    assert python("from django.conf import settings; settings.DEBUG", **environment | {"SIGNOFF_FAILPOINTS": ""}).returncode == 0


def test_every_point_is_reached_somewhere() -> None:
    sources = "".join(path.read_text() for app in ("effects", "approvals") for path in (ROOT / app).rglob("*.py"))
    missing = [point for point in failpoints.POINTS if f'reach("{point}"' not in sources and f'flushed("{point}"' not in sources]
    assert missing == []
