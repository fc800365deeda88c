"""The Celery application: `celery -A config worker`. Its settings are the CELERY_* lines of config.settings."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("signoff")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
