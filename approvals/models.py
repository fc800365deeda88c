"""Plans, their rows, the decisions on them, and the chunks in which approved rows go out."""

from enum import StrEnum

from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now


class PlanState(StrEnum):
    """Where a plan stands. Proposed plans are already immutable; approval freezes the rows."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    APPROVED = "approved"
    STOPPED = "stopped"
    REJECTED = "rejected"
    CHANGES_REQUESTED = "changes_requested"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class Plan(models.Model):
    """A list of finished letters (or payloads) that an agent proposes and a person decides on.

    `run_id` is plain text: a plan knows no run. `author` is the person who answers for the token that proposed it.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT)
    run_id = models.TextField(blank=True)
    title = models.CharField(max_length=200)
    rationale = models.TextField(blank=True)
    tool = models.CharField(max_length=80)
    channel = models.ForeignKey("effects.Channel", on_delete=models.PROTECT)
    event_id = models.TextField()
    scope = models.TextField(blank=True)
    currency = models.CharField(max_length=3, blank=True)
    state = models.CharField(max_length=20, default=PlanState.DRAFT.value)
    version = models.IntegerField(default=1)
    replaces = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="replaced_by")
    token = models.ForeignKey("accounts.Token", on_delete=models.PROTECT, related_name="+")
    author = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="+")
    row_count = models.IntegerField(default=0)
    digest = models.CharField(max_length=80, blank=True)  # of everything a reviewer is shown; set on submit
    checks = models.JSONField(default=list)  # [{code, blocking, text, count, positions}]
    created_at = models.DateTimeField(db_default=Now())
    proposed_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=[state.value for state in PlanState]), name="plan_state_is_one_we_know"),
            models.CheckConstraint(
                condition=Q(state__in=[PlanState.DRAFT, PlanState.WITHDRAWN]) | ~Q(digest=""), name="a_proposed_plan_has_a_digest"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="plans_newest_first"),
            models.Index(fields=["workspace", "state", "-id"], name="plans_by_state"),
            models.Index(fields=["run_id", "-id"], condition=~Q(run_id=""), name="plans_of_one_run"),
            # Composed, as the event enters the key: only plans of one event can share keys.
            models.Index(F("workspace"), Func(F("event_id"), function="normalize"), name="plans_of_one_event"),
        ]

    def __str__(self) -> str:
        return self.title


class Recipient(models.Model):
    """One target of a plan, with the finished content and the key of the effect it asks for."""

    position = models.IntegerField()  # 1, 2, 3 … as it came
    target_typed = models.TextField()
    target = models.TextField()
    key = models.CharField(max_length=80)
    epoch = models.IntegerField(default=0)
    amount_minor = models.BigIntegerField(null=True)
    subject = models.TextField(blank=True)
    text = models.TextField(blank=True)
    html = models.TextField(blank=True)
    payload = models.JSONField(null=True)
    record = models.JSONField(null=True)  # what the agent knew of the recipient; shown, never sent
    content_digest = models.CharField(max_length=80)
    excluded_reason = models.TextField(blank=True)  # not empty: this row is never sent

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.position}: {self.target}"


class Row(Recipient):
    """A recipient as it was proposed. Its outcome is never written here: it is read from the ledger at each look."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "position"], include=["key"], name="one_row_per_plan_and_position"),
        ]
        indexes = [
            models.Index(fields=["plan", "key"], name="rows_by_key"),
            models.Index(fields=["plan", "target"], include=["position"], name="rows_by_target"),
            models.Index(fields=["plan", "position"], condition=~Q(excluded_reason=""), name="rows_that_are_left_out"),
        ]


class Outcome(Recipient):
    """A row with what became of it: the view `approvals_outcome` (`approvals/sql/outcomes.sql`). Read, never written.

    `figure` is the word under which the closing sum counts it; `effect` is the attempt that tells, if there was one.
    """

    plan = models.ForeignKey(Plan, on_delete=models.DO_NOTHING, related_name="+")
    figure = models.CharField(max_length=20)
    effect = models.ForeignKey("effects.Effect", on_delete=models.DO_NOTHING, null=True, related_name="+")
    attempt = models.IntegerField(null=True)
    receipt = models.TextField(null=True)
    reason = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "approvals_outcome"


class OptOut(models.Model):
    """A target that wants nothing, through one channel or through any. In force until it is lifted.

    Every row to it that was not sent yet is withheld: in plans to come, and for good in those that were proposed before it was lifted.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(
        "effects.Channel", on_delete=models.PROTECT, null=True, db_index=False
    )  # none: whatever the channel
    target = models.TextField()  # as resolved, like the target of a row
    reason = models.TextField()
    by = models.TextField()  # as the record names them
    at = models.DateTimeField(db_default=Now())
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "target", "channel"],
                condition=Q(lifted_at=None),
                nulls_distinct=False,
                name="one_opt_out_in_force",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="an_opt_out_has_a_reason"),
        ]
        indexes = [
            models.Index(fields=["workspace", "target"], name="opt_outs_by_target"),
            models.Index(fields=["workspace", "-id"], name="opt_outs_newest_first"),
        ]

    def __str__(self) -> str:
        return self.target


class Decision(models.Model):
    """One person's word on one plan, bound to the digest they were shown."""

    class Kind(models.TextChoices):
        APPROVED = "approved"
        REJECTED = "rejected"
        CHANGES_REQUESTED = "changes_requested"

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="decisions")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    by = models.ForeignKey("accounts.User", on_delete=models.PROTECT)
    at = models.DateTimeField(db_default=Now())
    digest = models.CharField(max_length=80)
    reason = models.TextField(blank=True)
    rule = models.JSONField(default=dict)  # the rule in force, copied

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "by"], name="one_decision_per_person_and_plan"),
            models.CheckConstraint(condition=Q(kind="approved") | ~Q(reason=""), name="a_no_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by}"


class Chunk(models.Model):
    """Rows `lo` to `hi` (both in it) of an approved plan. A message says only "look at chunk 17"."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="chunks")
    lo = models.IntegerField()
    hi = models.IntegerField()
    due_at = models.DateTimeField(null=True)  # none: nothing left to do
    leased_until = models.DateTimeField(null=True)
    leased_by = models.CharField(max_length=80, blank=True)
    announced_at = models.DateTimeField(null=True)
    takes = models.SmallIntegerField(
        db_default=0
    )  # since it was last put back, or since `trying` moved on; over one: a holder vanished
    trying = models.IntegerField(null=True)  # the position that is being read alone, since holders vanished

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "lo"], name="chunks_do_not_overlap")]
        indexes = [models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="chunks_that_are_due")]

    def __str__(self) -> str:
        return f"rows {self.lo} to {self.hi} of {self.plan}"
