"""The product's own Celery application with a pool of child processes: `celery -A tests.chaos.forking worker`.

Ours waits on threads (decision 16); whoever runs it with children must be served as well, and a child can be killed by itself.
"""

from config.celery import app

__all__ = ["app"]

app.conf.worker_pool = "prefork"  # on the command line the settings would win
