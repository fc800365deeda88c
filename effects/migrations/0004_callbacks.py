from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

RULES = Path(__file__).resolve().parent.parent / 'sql' / 'callback_rules.sql'


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ("effects", "0003_challenges"),
    ]

    operations = [
        migrations.CreateModel(
            name='Callback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_id', models.CharField(max_length=200)),
                ('kind', models.CharField(choices=[('delivered', 'delivered'), ('bounced', 'bounced'), ('rejected', 'rejected')], max_length=10)),
                ('exact', models.BooleanField()),
                ('receipt', models.TextField(blank=True)),
                ('reason', models.TextField(blank=True)),
                ('said_at', models.DateTimeField(null=True)),
                ('raw', models.BinaryField()),
                ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
                ('applied_at', models.DateTimeField(null=True)),
                ('outcome', models.CharField(blank=True, db_default='', max_length=10)),
                ('seen_by', models.CharField(blank=True, db_default='', max_length=200)),
                ('seen_at', models.DateTimeField(null=True)),
                ('seen_reason', models.TextField(blank=True, db_default='')),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='effects.channel')),
                ('effect', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='callbacks', to='effects.effect')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='callbacks_that_are_due'), models.Index(condition=models.Q(('outcome', 'contrary'), ('seen_at', None)), fields=['workspace', 'id'], name='news_for_a_person')],
                'constraints': [models.UniqueConstraint(fields=('channel', 'event_id'), name='an_event_is_kept_once'), models.CheckConstraint(condition=models.Q(('kind__in', ['delivered', 'bounced', 'rejected'])), name='a_callback_is_one_of_three'), models.CheckConstraint(condition=models.Q(models.Q(('applied_at', None), ('due_at__isnull', False), ('outcome', '')), models.Q(('applied_at__isnull', False), ('due_at', None), ('outcome__in', ['settled', 'agreed', 'contrary', 'repeated'])), _connector='OR'), name='applied_exactly_when_it_came_to_something'), models.CheckConstraint(condition=models.Q(models.Q(('seen_at', None), ('seen_by', ''), ('seen_reason', '')), models.Q(('outcome', 'contrary'), ('seen_at__isnull', False), models.Q(('seen_by', ''), _negated=True), models.Q(('seen_reason', ''), _negated=True)), _connector='OR'), name='only_news_is_seen_by_whom_and_why')],
            },
        ),
        migrations.RunSQL(RULES.read_text(), migrations.RunSQL.noop),
    ]
