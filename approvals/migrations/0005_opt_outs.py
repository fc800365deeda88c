from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    """Targets that opted out, and the views of what may be sent and what became of it, which know them."""

    dependencies = [("approvals", "0004_quick_lists"), ("effects", "0005_quick_counts")]
    operations = [
        migrations.CreateModel(
            name="OptOut",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("target", models.TextField()),
                ("reason", models.TextField()),
                ("by", models.TextField()),
                ("at", models.DateTimeField(db_default=Now())),
                ("lifted_at", models.DateTimeField(null=True)),
                ("lifted_by", models.TextField(blank=True)),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="effects.channel"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="accounts.workspace"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["workspace", "target"], name="opt_outs_by_target"),
                    models.Index(fields=["workspace", "-id"], name="opt_outs_newest_first"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["workspace", "target", "channel"],
                        condition=Q(lifted_at=None),
                        nulls_distinct=False,
                        name="one_opt_out_in_force",
                    ),
                    models.CheckConstraint(condition=~Q(reason=""), name="an_opt_out_has_a_reason"),
                ],
            },
        ),
        migrations.AddIndex(
            "row",
            models.Index(fields=["plan", "target"], include=["position"], name="rows_by_target"),
        ),
        migrations.CreateModel(
            name="Outcome",
            fields=[("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))],
            options={"db_table": "approvals_outcome", "managed": False},
        ),
        migrations.RunSQL("DROP VIEW IF EXISTS approvals_outcome, approvals_covered, approvals_outlook"),
        *(migrations.RunSQL((SQL / name).read_text()) for name in ("opt_outs.sql", "outlook.sql", "outcomes.sql")),
    ]
