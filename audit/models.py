"""The record: every act of a person or a rule, written once and never changed (a trigger refuses)."""

from django.db import models
from django.db.models.functions import Now


class Entry(models.Model):
    """One act: who, what, on what, why, when, before and after."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT)
    at = models.DateTimeField(db_default=Now())
    actor_kind = models.CharField(max_length=10)  # human, token, machine, command
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=200)
    address = models.CharField(max_length=64, blank=True)
    act = models.CharField(max_length=60)  # a past participle: "plan approved", "epoch opened"
    object_kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    object_name = models.CharField(max_length=300, blank=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    digest = models.CharField(max_length=80, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-id"], name="entry_newest_first"),
            models.Index(fields=["object_kind", "object_id"], name="entry_of_one_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.act}"
