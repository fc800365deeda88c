"""Runs of agents, as the agent's runtime records them."""

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class RunState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


class Run(models.Model):
    """One run of one agent. Tool history that nobody recorded counts as unknown: `tools` is none until told."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT)
    token = models.ForeignKey("accounts.Token", on_delete=models.PROTECT, related_name="+")
    agent = models.CharField(max_length=120)
    event_id = models.TextField()
    occurrence = models.DateTimeField(null=True)  # the planned occurrence of a schedule, never the clock's
    replay_of = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="replays")
    state = models.CharField(max_length=10, default=RunState.RUNNING.value)
    reason = models.TextField(blank=True)
    tools = models.JSONField(null=True)  # names of tools called, in order; none: not recorded
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "agent", "event_id", "occurrence"],
                condition=Q(occurrence__isnull=False, replay_of=None),
                name="one_run_per_planned_occurrence",
            ),
            models.CheckConstraint(condition=Q(state__in=[state.value for state in RunState]), name="run_state_is_one_we_know"),
            models.CheckConstraint(
                condition=Q(state=RunState.RUNNING, ended_at=None) | (~Q(state=RunState.RUNNING) & Q(ended_at__isnull=False)),
                name="ended_exactly_when_not_running",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-id"], name="runs_newest_first")]

    def __str__(self) -> str:
        return f"{self.agent} {self.pk}"


class Answer(models.Model):
    """What a POST with an Idempotency-Key was answered, so that a repeat gets the same and does nothing."""

    token = models.ForeignKey("accounts.Token", on_delete=models.CASCADE)
    route = models.CharField(max_length=200)
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    status = models.IntegerField(null=True)  # none: the first request is still running
    body = models.JSONField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "route", "key"], name="one_answer_per_idempotency_key")]

    def __str__(self) -> str:
        return self.key
