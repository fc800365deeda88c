"""Named points at which a test kills, stops or disturbs a worker: between any two commits, and on both sides of the first byte.

Off and free unless the environment names them, which settings refuse outside DEBUG. No plan, channel or request can set one.

    SIGNOFF_FAILPOINTS="kept:kill@3, calling=customer7@example.com:stop"

reads: die by SIGKILL the third time that replies were kept; stop (SIGSTOP) before the call to that target.
"""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

POINTS: dict[str, str] = {
    "offer": "a row was read, and is about to be offered for its claim (of: its target)",
    "reserve": "a window of rows is about to be committed as pending",
    "reserved": "it is committed, and no call has begun",
    "calling": "one row's turn has come, before the last look (of: its target)",
    "first-byte": "a connection is open, before the last look at the time and the first byte of content",
    "last-byte": "the whole request is out, and no answer was read",
    "answered": "the reply of one row is in memory (of: its target)",
    "keep": "raw replies are about to be committed",
    "kept": "they are committed, and nobody has read them",
    "settle": "replies were read, and their verdicts are about to be committed",
    "settled": "the verdicts are committed",
    "challenged": "the answer to a challenge is committed as begun, and not a byte of it is out",
    "challenge-answered": "the reply to that answer is in memory",
    "challenge-kept": "it is committed, and nobody has read it",
    "put-back": "the chunks of a turn are about to be put back",
    "put-back-done": "they are committed as free",
    "prove": "a look-up found the effect, and that is about to be committed",
    "proved": "it is committed",
    "apply": "a callback is proof, and that is about to be committed",
    "applied": "it is committed",
    "give-up": "a pending row is about to be committed as unknown",
    "gave-up": "it is committed",
}
ACTIONS = ("kill", "stop", "raise", "cut")


class BadFailpoints(ValueError):
    """SIGNOFF_FAILPOINTS cannot be read; the message says which part."""


class Tripped(Exception):
    """What the action `raise` raises: a fault of ours that nobody foresaw."""


@dataclass
class _Trap:
    action: str
    hit: int  # which time it acts; only that one
    of: str = ""  # only for this target, where the point knows one
    count: int = 0


_traps: dict[str, list[_Trap]] = {}


def arm(text: str) -> None:
    """Set the failpoints of this process as `text` says, and no others. Raises BadFailpoints."""
    _traps.clear()
    _traps.update(parse(text))


def parse(text: str) -> dict[str, list[_Trap]]:
    """The traps by point. One is `point:action`, `point:action@hit` or `point=target:action@hit`; a comma stands between two."""
    traps: dict[str, list[_Trap]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        place, _, deed = part.rpartition(":")
        point, _, of = place.partition("=")
        action, _, hit = deed.partition("@")
        if point not in POINTS:
            raise BadFailpoints(f"{part!r} names no point; there are {', '.join(POINTS)}")
        if action not in ACTIONS:
            raise BadFailpoints(f"{part!r} names no action; there are {', '.join(ACTIONS)}")
        if hit and not (hit.isdecimal() and int(hit)):
            raise BadFailpoints(f"{part!r} must end with the number of the hit, counted from 1")
        traps.setdefault(point, []).append(_Trap(action, int(hit or 1), of))
    return traps


def reach(point: str, pen: Any = None, *, of: str = "") -> None:
    """Say that this point was reached: nothing, unless a test armed it. `pen` is the connection that a cut would lose."""
    if _traps:
        _spring(point, pen, of)


async def flushed(point: str, buffered: Callable[[], int]) -> None:
    """As `reach`, once nothing is `buffered` on our side any more: what was written has left this process."""
    if point in _traps:
        while True:
            await asyncio.sleep(0.001)  # transports write at the end of a turn of the loop
            if not buffered():
                break
        _spring(point, None, "")


def _spring(point: str, pen: Any, of: str) -> None:
    for trap in _traps.get(point, ()):
        if trap.of and trap.of != of:
            continue
        trap.count += 1
        if trap.count == trap.hit:
            _act(trap.action, point, pen)


def _act(action: str, point: str, pen: Any) -> None:
    me = threading.get_ident()  # the signal goes to this thread, and stops all: not a step further is taken
    match action:
        case "kill":
            signal.pthread_kill(me, signal.SIGKILL)
        case "stop":
            signal.pthread_kill(me, signal.SIGSTOP)
        case "raise":
            raise Tripped(f"failpoint {point}")
        case "cut":
            _cut(point, pen)


def _cut(point: str, pen: Any) -> None:
    """Lose the connection without a farewell, and say so as the client library would.

    Before a commit the server never hears of it; after one, this is a COMMIT whose reply was lost.
    """
    import psycopg

    if pen is None:
        raise Tripped(f"failpoint {point}: there is no connection to cut here")
    with socket.socket(fileno=os.dup(pen.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    pen.pgconn.finish()
    raise psycopg.OperationalError(f"server closed the connection unexpectedly (failpoint {point})")
