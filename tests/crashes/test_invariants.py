"""The checker is tested too: each promise broken once, by hand, and found out."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.crashes.invariants import Attempt, Facts, Post, Step, broken

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ANSWER = b'HTTP/1.1 200 OK\r\n\r\n{"id": "r-1"}'


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def sound() -> Facts:
    """Two approved rows: ada's was done in order, bo's was refused once and lost the second time."""
    return Facts(
        approved={("ada", 0): "digest-a", ("bo", 0): "digest-b"},
        decided_at=NOON,
        attempts=[
            Attempt(1, "ada", 0, 1, "ada@x", "done", "digest-a", later(1), later(3), "r-1", "accepted", ANSWER, later(2)),
            Attempt(2, "bo", 0, 1, "bo@x", "failed", "digest-b", later(1), later(3), "", "429", b"429", later(2)),
            Attempt(3, "bo", 0, 2, "bo@x", "unknown", "digest-b", later(4), later(9), "", "no answer was kept"),
        ],
        trail=[Step(1, "pending", "done"), Step(2, "pending", "failed"), Step(3, "pending", "unknown")],
        posts=[
            Post("ada@x", "ada", 0, 1, later(1.5), "digest-a", receipt="r-1", answer=ANSWER),
            Post("bo@x", "bo", 0, 1, later(1.5), "digest-b", accepted=False, answer=b"429"),
            Post("bo@x", "bo", 0, 2, later(5), "digest-b", receipt="r-2"),
        ],
        desk={3: "no answer was kept"},
        counts={"rows": 2, "done": 1, "unknown": 1},
    )


def change(facts: Facts, which: str, nth: int, /, **values: object) -> None:
    rows = getattr(facts, which)
    rows[nth] = replace(rows[nth], **values)


# promise -> what breaks it
TABLE: dict[str, list[Callable[[Facts], object]]] = {
    "I1:": [lambda f: f.posts.append(replace(f.posts[0], attempt=2))],
    "I2:": [lambda f: change(f, "posts", 0, accepted=False), lambda f: change(f, "attempts", 0, receipt="r-9")],
    "I3:": [lambda f: change(f, "posts", 1, accepted=True)],
    "I5:": [
        lambda f: f.attempts.append(
            Attempt(4, "bo", 0, 3, "bo@x", "failed", "digest-b", later(10), later(12), reply=b"x", kept_at=later(11))
        )
    ],
    "I7:": [
        lambda f: f.posts.append(Post("eve@x", "eve", 0, 1, later(5), "digest-e")),
        lambda f: change(f, "posts", 0, at=later(-1)),
    ],
    "I8:": [lambda f: change(f, "posts", 0, digest="digest-of-something-else")],
    "I9:": [lambda f: change(f, "posts", 2, claimed=False)],
    "I10:": [
        lambda f: change(f, "attempts", 0, kept_at=later(3)),
        lambda f: change(f, "attempts", 0, reply=None, kept_at=None),
        lambda f: change(f, "attempts", 0, reply=b"something else"),
        lambda f: change(f, "attempts", 1, reply=None, kept_at=None),
    ],
    "I11:": [
        lambda f: f.trail.insert(2, Step(2, "failed", "pending")),
        lambda f: change(f, "attempts", 2, attempt=3),
    ],
    "I13:": [
        lambda f: change(f, "attempts", 1, state="unknown"),
        lambda f: change(f, "attempts", 2, reserved_at=later(2)),
    ],
    "I14:": [lambda f: f.trail.pop()],
    "I17:": [
        lambda f: f.approved.update({("cy", 0): "digest-c"}),
        lambda f: change(f, "attempts", 2, state="pending"),
        lambda f: f.counts.update(done=2),
    ],
    "I19:": [lambda f: f.desk.clear(), lambda f: f.desk.update({3: ""}), lambda f: f.desk.update({1: "stuck"})],
}


def test_a_sound_story_breaks_nothing() -> None:
    assert broken(sound()) == []


@pytest.mark.parametrize(("promise", "which"), [(name, n) for name, ways in TABLE.items() for n in range(len(ways))])
def test_each_broken_promise_is_found_out(promise: str, which: int) -> None:
    facts = sound()
    TABLE[promise][which](facts)
    assert any(line.startswith(promise) for line in broken(facts)), broken(facts)


def test_where_nothing_went_wrong_everything_must_be_done() -> None:
    assert [line[:4] for line in broken(sound(), calm=True)] == ["I18:"]


def test_a_look_up_is_as_good_as_a_kept_reply() -> None:
    facts = sound()
    change(facts, "attempts", 0, reply=None, kept_at=None, found="r-1")
    assert broken(facts) == []
