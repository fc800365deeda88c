from pathlib import Path

from django.db import migrations, models

RULES = Path(__file__).resolve().parent.parent / "sql" / "approval.sql"


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_rules")]
    operations = [
        migrations.AddField("chunk", "takes", models.SmallIntegerField(db_default=0)),
        migrations.AddField("chunk", "trying", models.IntegerField(null=True)),
        migrations.RunSQL(RULES.read_text(), migrations.RunSQL.noop),
    ]
