"""Dispatch's door to Celery: announce due chunks, and look at one. A message that cannot be sent is no loss; beat finds the chunk."""

import logging
from typing import Any

from celery import shared_task
from django.dispatch import receiver
from kombu.exceptions import OperationalError

from approvals.dispatch import Busy, chunks_are_due, due_chunks, expire_plans, work_on
from effects.workplace import here

PASSES = 3  # times a message is handed on by processes that are busy; beat says it again later

log = logging.getLogger(__name__)


@shared_task(name="approvals.announce")
def announce() -> int:
    """Say of each chunk that is due and quiet that somebody should look at it; returns how many."""
    expire_plans()
    chunks = due_chunks()
    for chunk_id in chunks:
        look_at.delay(chunk_id)
    return len(chunks)


@shared_task(name="approvals.look_at")
def look_at(chunk_id: int, passed: int = 0) -> None:
    """Work for one turn, starting at this chunk, and have what is left looked at again. A busy process passes the message on."""
    workplace = here()
    try:
        for left in workplace.run(work_on(chunk_id, workplace)):
            look_at.delay(left)
    except Busy:
        if passed < PASSES:
            look_at.delay(chunk_id, passed + 1)


@receiver(chunks_are_due)
def _announce(**_: Any) -> None:
    try:
        announce()
    except OperationalError:
        log.warning("the broker is not reachable; beat announces the chunks once it is back")
