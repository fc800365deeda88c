"""The sweeper's door to Celery."""

from celery import shared_task

from effects.sweeping import sweep
from effects.workplace import here


@shared_task(name="effects.sweep")
def sweep_overdue() -> int:
    """Look at what is overdue; returns how many rows."""
    workplace = here()
    return workplace.run(sweep(workplace))
