"""Amounts in the order in which they came before the policy, so that sums can be judged."""

import django.db.models.deletion
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0014_standing'),
        ('runs', '0006_batch_tries'),
    ]

    operations = [
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool', models.CharField(max_length=80)),
                ('by', models.CharField(max_length=20)),
                ('value', models.CharField(max_length=300)),
                ('currency', models.CharField(max_length=3)),
                ('amount_minor', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('proposal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tallies', to='runs.proposal')),
            ],
            options={
                'indexes': [models.Index(fields=['by', 'value', 'currency', 'at'], name='tally_counted')],
                'constraints': [models.UniqueConstraint(fields=('proposal', 'by'), name='tally_once')],
            },
        ),
        db.grant("approvals_tally", rights="SELECT, INSERT"),
    ]
