from pathlib import Path

from django.db import migrations

RULES = Path(__file__).resolve().parent.parent / "sql" / "schema.sql"


class Migration(migrations.Migration):
    dependencies = [("effects", "0001_initial")]
    operations = [migrations.RunSQL(RULES.read_text(), migrations.RunSQL.noop)]
