"""Plans, decisions and dispatch."""

from importlib import import_module

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"

    def ready(self) -> None:
        """Listen for chunks that are due."""
        import_module("approvals.tasks")
