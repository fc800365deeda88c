"""How Signoff is put together: settings, processes, and the embedded services of a local start."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
