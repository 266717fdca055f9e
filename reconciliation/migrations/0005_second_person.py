"""A verdict that takes two people: proposed by one, confirmed by another."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):

    dependencies = [
        ('reconciliation', '0004_verdicts'),
        ('runs', '0002_guards'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProposedVerdict',
            fields=[
                ('number', models.BigAutoField(primary_key=True, serialize=False)),
                ('verdict', models.CharField(choices=[('happened', 'It happened'), ('differently', 'It happened differently'), ('did_not', 'It did not happen'), ('twice', 'It happened twice'), ('noted', 'Noted; put right outside'), ('by_probe', 'Settled by asking')], max_length=12)),
                ('evidence', models.TextField()),
                ('reference', models.CharField(blank=True, max_length=200)),
                ('other_reference', models.CharField(blank=True, max_length=200)),
                ('actual_minor', models.BigIntegerField(blank=True, null=True)),
                ('digest', models.CharField(help_text='of the verdict, whose it is, and what the other side had shown by then', max_length=64)),
                ('proposed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='reconciliation.case')),
                ('proposed_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['case', 'number'], name='proposed_by_case'),
                ],
            },
        ),
        migrations.AddField(
            model_name='case',
            name='confirmed_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal'),
        ),
        migrations.AddConstraint(
            model_name='case',
            constraint=models.CheckConstraint(condition=models.Q(('confirmed_by__isnull', True), models.Q(('state', 'resolved'), models.Q(('confirmed_by', models.F('resolved_by')), _negated=True)), _connector='OR'), name='case_confirmed_by_another'),
        ),
        db.grant("reconciliation_proposedverdict", rights="SELECT, INSERT"),
        db.grant(
            "reconciliation_case",
            rights="SELECT, INSERT, UPDATE (state, claimed_by_id, claimed_at, verdict, evidence, resolved_by_id,"
            " resolved_at, why, confirmed_by_id)",
        ),
    ]
