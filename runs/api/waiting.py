"""Long polling: an answer that comes when something changes. Looks into the database, for that is where changes are."""

import hashlib
import threading
import time

from approvals import coverage
from approvals.models import Plan

LONGEST_WAIT = 30.0  # seconds
BETWEEN_LOOKS = 0.5  # seconds
SHARE = 5.0  # a look that takes long is followed by a rest five times as long, so that waiting costs little

# A waiting request holds one of the eight threads of a web process; beyond these, the answer comes at once.
_places = threading.BoundedSemaphore(4)


def mark_of(plan: Plan, counts: dict[str, int]) -> str:
    """A short text that differs whenever state or counts differ."""
    told = f"{plan.state} {sorted(counts.items())}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def wait_for_change(plan: Plan, counts: dict[str, int], *, seen: str, seconds: float) -> tuple[Plan, dict[str, int]]:
    """The plan and its counts as soon as they are no longer what was seen (a mark or a state; else what is given), or in time."""
    until = time.monotonic() + min(seconds, LONGEST_WAIT)
    seen = seen or mark_of(plan, counts)
    if not _places.acquire(blocking=False):
        return plan, counts
    try:
        rest = BETWEEN_LOOKS
        while seen in (mark_of(plan, counts), plan.state) and (left := until - time.monotonic()) > 0:
            time.sleep(min(rest, left))
            began = time.monotonic()
            plan.refresh_from_db(fields=["state", "digest", "row_count"])
            counts = coverage.counts(plan)
            rest = max(BETWEEN_LOOKS, SHARE * (time.monotonic() - began))
    finally:
        _places.release()
    return plan, counts
