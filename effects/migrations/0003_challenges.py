from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

RULES = Path(__file__).resolve().parent.parent / "sql" / "challenges.sql"


class Migration(migrations.Migration):
    dependencies = [("effects", "0002_rules")]
    operations = [
        migrations.CreateModel(
            name="Challenge",
            fields=[
                (
                    "effect",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="challenge",
                        serialize=False,
                        to="effects.effect",
                    ),
                ),
                ("by", models.CharField(max_length=200)),
                ("begun_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("kind", models.CharField(blank=True, max_length=10)),
                ("raw", models.BinaryField(default=bytes)),
                ("note", models.TextField(blank=True)),
                ("kept_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.RunSQL(RULES.read_text(), migrations.RunSQL.noop),
    ]
