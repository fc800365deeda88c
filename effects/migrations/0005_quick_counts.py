from django.db import migrations, models
from django.db.models import F, Func, Q


class Migration(migrations.Migration):
    """The state goes into the index of a plan's effects, so that counting them reads no rows; effects that no plan asked for get one."""

    dependencies = [("effects", "0004_callbacks")]
    operations = [
        migrations.RemoveIndex("effect", "effects_of_one_plan"),
        migrations.AddIndex(
            "effect",
            models.Index(
                fields=["plan_id", "id"],
                include=["state"],
                condition=Q(plan_id__isnull=False),
                name="effects_of_one_plan",
            ),
        ),
        migrations.AddIndex(
            "effect",
            models.Index(
                F("workspace"),
                Func(F("event_id"), function="normalize"),
                condition=Q(plan_id=None),
                name="effects_without_a_plan",
            ),
        ),
    ]
