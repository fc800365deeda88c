"""The product's own Celery application with its waits shortened: `celery -A tests.crashes.hasty worker`."""

# ruff: noqa: E402 (Django first, then the modules whose waits are shortened)
import os

import django

django.setup()

from approvals import dispatch
from config.celery import app
from effects import ledger, sweeping, verdicts

__all__ = ["app"]

ledger.SLACK = 0.5
sweeping.UNDISTURBED = 1.5
dispatch.LEASE, dispatch.SOON, dispatch.SELDOM = 1.5, 0.3, 0.3
dispatch.SQL["due"] = dispatch.SQL["due"].replace("interval '10 seconds'", "interval '1 second'")
verdicts.BACK_OFF = 0.3
app.conf.beat_schedule = {name: entry | {"schedule": 0.3} for name, entry in app.conf.beat_schedule.items()}
app.conf.beat_max_loop_interval = 0.3
app.conf.worker_pool = os.environ.get("HASTY_POOL", app.conf.worker_pool)  # on the command line the settings would win
