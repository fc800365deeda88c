"""The ledger: one row per attempt at one effect, its trail, its look-ups, and the epochs people opened.

The rules are kept by the database: named constraints here, triggers in `effects/sql/schema.sql`.
"""

from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from effects.news import Kind, Outcome
from effects.states import BLOCKING, WAITS_FOR_A_PERSON, State

STATES = [state.value for state in State]
BLOCKING_STATES = sorted(BLOCKING)
OPEN_STATES = sorted({State.PENDING, *WAITS_FOR_A_PERSON})
KINDS = [kind.value for kind in Kind]
OUTCOMES = [outcome.value for outcome in Outcome]


class Channel(models.Model):
    """One workspace's account at one provider. `secrets` is encrypted; `settings` holds the provider's own settings."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT)
    slug = models.SlugField()
    provider = models.CharField(max_length=40)
    settings = models.JSONField(default=dict)
    secrets = models.TextField(blank=True)
    next_slot = models.DateTimeField(db_default=Now())  # when the next call may start, where a rate is set
    swept_until = models.DateTimeField(db_default=Now())  # until then its sweeper is left alone
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="one_channel_per_slug")]

    def __str__(self) -> str:
        return self.slug


class Effect(models.Model):
    """One attempt at one thing done to one target.

    `plan_id` and `run_id` are plain values: the ledger knows no plan and no run. Times are the database's own.
    Workspace and channel are checked once a statement, by the trigger `effects_belong_to_their_channel`, not once a row.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    key = models.CharField(max_length=80)
    epoch = models.IntegerField(default=0)
    attempt = models.IntegerField(default=1)
    state = models.CharField(max_length=10, choices=[(state, state) for state in STATES])

    tool = models.CharField(max_length=80)
    target = models.TextField()
    amount_minor = models.BigIntegerField(null=True)
    event_id = models.TextField()
    scope = models.TextField(blank=True)
    content_digest = models.CharField(max_length=80)  # of the frozen content that was to be sent
    plan_id = models.BigIntegerField(null=True)
    run_id = models.TextField(blank=True)

    worker = models.CharField(max_length=80)
    reserved_at = models.DateTimeField(db_default=Now())
    deadline = models.DateTimeField()  # past it, nobody is still making this call

    receipt = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    evidence = models.TextField(blank=True)
    settled_by = models.CharField(max_length=200, blank=True)
    settled_at = models.DateTimeField(null=True)
    ruled = models.BooleanField(db_default=False)  # a person settled it, not a machine
    retry_at = models.DateTimeField(null=True)  # on a failed row: from when another attempt is allowed
    look_up_at = models.DateTimeField(null=True)  # on an open row: when the sweeper asks the provider next
    superseded_by = models.ForeignKey("effects.Epoch", on_delete=models.PROTECT, null=True, db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["key", "epoch"],
                condition=Q(state__in=BLOCKING_STATES),
                name="one_live_effect_per_key_and_epoch",
            ),
            models.UniqueConstraint(fields=["key", "epoch", "attempt"], name="attempts_are_numbered_once"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="state_is_one_of_six"),
            models.CheckConstraint(
                condition=Q(state=State.PENDING, settled_at=None) | (~Q(state=State.PENDING) & Q(settled_at__isnull=False)),
                name="settled_exactly_when_not_pending",
            ),
            models.CheckConstraint(condition=~Q(state=State.DONE) | ~Q(receipt=""), name="done_has_a_receipt"),
            models.CheckConstraint(condition=Q(superseded_by=None) | Q(state=State.DONE), name="only_done_is_superseded"),
            models.CheckConstraint(condition=Q(retry_at=None) | Q(state=State.FAILED), name="only_failed_is_retried"),
            models.CheckConstraint(condition=Q(deadline__gt=F("reserved_at")), name="deadline_comes_after_reservation"),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="ledger_newest_first"),
            models.Index(
                fields=["plan_id", "id"], include=["state"], condition=Q(plan_id__isnull=False), name="effects_of_one_plan"
            ),
            models.Index(
                F("workspace"),
                Func(F("event_id"), function="normalize"),
                condition=Q(plan_id=None),
                name="effects_without_a_plan",
            ),
            models.Index(fields=["run_id", "id"], condition=~Q(run_id=""), name="effects_of_one_run"),
            models.Index(fields=["state", "workspace", "id"], condition=Q(state__in=OPEN_STATES), name="open_effects_by_state"),
            models.Index(fields=["look_up_at"], condition=Q(look_up_at__isnull=False), name="look_ups_that_are_due"),
            models.Index(fields=["retry_at"], condition=Q(retry_at__isnull=False), name="retries_that_are_allowed"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} to {self.target} ({self.state})"

    @property
    def reply(self) -> "KeptReply | None":
        """What the provider answered, if anything was kept. Lists fetch it with `select_related("kept_reply")`."""
        return getattr(self, "kept_reply", None)

    @property
    def answer(self) -> "Challenge | None":
        """The answer to its challenge, if it had one and somebody began."""
        return getattr(self, "challenge", None)


class KeptReply(models.Model):
    """The raw reply to one call, committed before anybody read it. A row of its own, written once: settling copies no bytes.

    No foreign key is checked at each insert: effects are never deleted, and only the pen writes here.
    """

    effect = models.OneToOneField(
        Effect, on_delete=models.PROTECT, primary_key=True, related_name="kept_reply", db_constraint=False
    )
    kind = models.CharField(max_length=10)  # answered, lost, not sent, withheld
    raw = models.BinaryField()
    note = models.TextField(blank=True)  # our own word on it
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.kind


class Challenge(models.Model):
    """The one answer to a challenge: who gives it, committed before its first byte, and the raw reply, before anybody read it.

    One row an effect, so that two who would answer cannot both; `kind` is empty until the reply is known.
    """

    effect = models.OneToOneField(
        Effect, on_delete=models.PROTECT, primary_key=True, related_name="challenge", db_constraint=False
    )
    by = models.CharField(max_length=200)
    begun_at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=10, blank=True)  # answered, lost, not sent
    raw = models.BinaryField(default=bytes)
    note = models.TextField(blank=True)  # our own word on it
    kept_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.kind or "begun"


class Event(models.Model):
    """One arrow taken by one effect; written by a trigger, so that no caller can forget it."""

    effect = models.ForeignKey(Effect, on_delete=models.PROTECT, related_name="events", db_constraint=False)
    at = models.DateTimeField(db_default=Now())
    before = models.CharField(max_length=10)
    after = models.CharField(max_length=10)
    by = models.CharField(max_length=200)
    reason = models.TextField(blank=True)
    evidence = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.before} -> {self.after}"


class LookUp(models.Model):
    """One question to the provider whether an effect exists, and its answer as it came."""

    effect = models.ForeignKey(Effect, on_delete=models.PROTECT, related_name="look_ups")
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=200)
    answer = models.CharField(max_length=12)  # found, absent, inconclusive
    receipt = models.TextField(blank=True)
    raw = models.BinaryField(default=bytes)

    def __str__(self) -> str:
        return self.answer


class Callback(models.Model):
    """What a provider told later of one effect, signed, kept before anybody acted on it.

    The web keeps it and notes who has seen it; the sweeper says what it came to. Its content never changes, and it is applied once.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    event_id = models.CharField(max_length=200)  # the provider's own name for this event
    effect = models.ForeignKey(Effect, on_delete=models.PROTECT, related_name="callbacks")
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in KINDS])
    exact = models.BooleanField()  # it names the attempt, or there is but one
    receipt = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    said_at = models.DateTimeField(null=True)  # when it happened, in the provider's own word
    raw = models.BinaryField()  # the body that was signed
    received_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True, db_default=Now())  # when the sweeper looks at it next
    applied_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=10, blank=True, db_default="")
    seen_by = models.CharField(max_length=200, blank=True, db_default="")
    seen_at = models.DateTimeField(null=True)
    seen_reason = models.TextField(blank=True, db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "event_id"], name="an_event_is_kept_once"),
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="a_callback_is_one_of_three"),
            models.CheckConstraint(
                condition=Q(outcome="", applied_at=None, due_at__isnull=False)
                | Q(outcome__in=OUTCOMES, applied_at__isnull=False, due_at=None),
                name="applied_exactly_when_it_came_to_something",
            ),
            models.CheckConstraint(
                condition=Q(seen_at=None, seen_by="", seen_reason="")
                | (Q(seen_at__isnull=False, outcome=Outcome.CONTRARY.value) & ~Q(seen_by="") & ~Q(seen_reason="")),
                name="only_news_is_seen_by_whom_and_why",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="callbacks_that_are_due"),
            models.Index(
                fields=["workspace", "id"], condition=Q(outcome=Outcome.CONTRARY.value, seen_at=None), name="news_for_a_person"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.outcome or 'waits'}"

    @property
    def is_news(self) -> bool:
        """True while it contradicts the ledger and nobody has said that they saw it."""
        return self.outcome == Outcome.CONTRARY and self.seen_at is None


class Epoch(models.Model):
    """An epoch above 0 of one key: opened by a person, on a done effect, for a reason."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT)
    key = models.CharField(max_length=80)
    epoch = models.IntegerField()
    supersedes = models.OneToOneField(Effect, on_delete=models.PROTECT, related_name="+")
    opened_by = models.ForeignKey("accounts.User", on_delete=models.PROTECT)
    opened_at = models.DateTimeField(db_default=Now())
    reason = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key", "epoch"], name="an_epoch_is_opened_once"),
            models.CheckConstraint(condition=Q(epoch__gt=0), name="epoch_zero_needs_no_opening"),
            models.CheckConstraint(condition=~Q(reason=""), name="an_epoch_has_a_reason"),
        ]
        indexes = [models.Index(fields=["workspace", "-id"], name="epochs_newest_first")]

    def __str__(self) -> str:
        return f"{self.key} epoch {self.epoch}"


class Pause(models.Model):
    """Nothing new starts on its subject (`plan:17`, `channel:3`, `workspace:1`, `everything`) until it is lifted or runs out."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, null=True)  # none: everybody's
    subject = models.CharField(max_length=60)
    reason = models.TextField()
    started_by = models.CharField(max_length=200)
    started_at = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(null=True)  # none: until somebody lifts it
    lifted_by = models.CharField(max_length=200, blank=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["subject"], condition=Q(lifted_at=None), name="pauses_in_force")]

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"
