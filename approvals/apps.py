"""Plans, decisions and dispatch."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"

    def ready(self) -> None:
        """Listen for chunks that are due."""
