from django.db import migrations, models
from django.db.models import F, Func, Q


class Migration(migrations.Migration):
    """Indexes for lists of many plans, for the closing sum, and for the rows that a reviewer left out."""

    dependencies = [("approvals", "0003_approvals_and_takes"), ("effects", "0005_quick_counts")]
    operations = [
        migrations.AddIndex("plan", models.Index(fields=["workspace", "state", "-id"], name="plans_by_state")),
        migrations.AddIndex("plan", models.Index(fields=["run_id", "-id"], condition=~Q(run_id=""), name="plans_of_one_run")),
        migrations.AddIndex(
            "plan",
            models.Index(F("workspace"), Func(F("event_id"), function="normalize"), name="plans_of_one_event"),
        ),
        migrations.AddIndex(
            "row",
            models.Index(fields=["plan", "position"], condition=~Q(excluded_reason=""), name="rows_that_are_left_out"),
        ),
        migrations.RemoveConstraint("row", "one_row_per_plan_and_position"),
        migrations.AddConstraint(
            "row",
            models.UniqueConstraint(fields=["plan", "position"], include=["key"], name="one_row_per_plan_and_position"),
        ),
    ]
