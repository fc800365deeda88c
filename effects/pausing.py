"""Pauses as rows: who, why, until when. Visible, liftable, surviving restarts; each holds one subject and nobody else."""

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from effects.models import Pause

EVERYTHING = "everything"  # every workspace: the kill switch of whoever runs Signoff


def of_channel(id: int) -> str:
    """The channel as a pause names it."""
    return f"channel:{id}"


def of_workspace(id: int) -> str:
    """The workspace as a pause names it."""
    return f"workspace:{id}"


def in_force(subjects: list[str]) -> QuerySet[Pause]:
    """The pauses that hold any of `subjects` now, oldest first."""
    return Pause.objects.filter(Q(until=None) | Q(until__gt=Now()), subject__in=subjects, lifted_at=None).order_by("id")
