"""The Celery application: `celery -A config worker`. Its settings are the CELERY_* lines of config.settings."""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("signoff")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
@beat_init.connect
def _look_at_the_role(**_: Any) -> None:
    from config.standing import worker_starts  # the settings are read by now, and not before

    worker_starts()
