"""Acts on many runs, recurring work, runs that parked under a freeze, and tokens that may operate."""


import django.db.models.deletion
import django.db.models.functions.datetime
import runs.ids
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0004_waits'),
    ]

    operations = [
        migrations.CreateModel(
            name='Batch',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('act', models.CharField(max_length=20)),
                ('reason', models.TextField()),
                ('chosen', models.CharField(help_text='how the runs were chosen, in words', max_length=300)),
                ('total', models.PositiveIntegerField(help_text='how many runs were chosen')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(blank=True, help_text='when the last run had its result', null=True)),
                ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ],
            options={
                'verbose_name_plural': 'batches',
                'indexes': [
                    models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['created_at'], name='batch_open'),
                    models.Index(fields=['-created_at'], name='batch_newest'),
                ],
            },
        ),
        migrations.CreateModel(
            name='BatchItem',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('code', models.CharField(blank=True, help_text='ok, or why it was refused; empty until it was tried', max_length=40)),
                ('detail', models.JSONField(default=dict)),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('batch', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='items', to='runs.batch')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('done_at__isnull', True)), fields=['batch', 'id'], name='batch_item_open'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('batch', 'run'), name='batch_item_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('code', ''), ('done_at__isnull', True)), models.Q(models.Q(('code', ''), _negated=True), ('done_at__isnull', False)), _connector='OR'), name='batch_item_done_iff_result'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Recurring',
            fields=[
                ('name', models.CharField(max_length=60, primary_key=True, serialize=False)),
                ('every_seconds', models.PositiveIntegerField(help_text='how often it is begun, at the latest')),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, help_text='when it last ended, well or not', null=True)),
                ('result', models.CharField(blank=True, help_text='what it did, or what went wrong', max_length=300)),
                ('failed', models.BooleanField(default=False, help_text='it ended with an error the last time')),
            ],
            options={
                'verbose_name_plural': 'recurring work',
            },
        ),
        migrations.AddField(
            model_name='apitoken',
            name='may_operate',
            field=models.BooleanField(db_default=False, default=False, help_text='may operate its own runs, and freeze; fixed when made'),
        ),
        migrations.AddField(
            model_name='run',
            name='frozen_by',
            field=models.UUIDField(blank=True, help_text='the freeze under which it parked', null=True),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('frozen_by__isnull', False)), fields=['frozen_by', 'id'], name='run_frozen'),
        ),
        db.closed_once(table="runs_batchitem", column="done_at"),
        db.closed_once(table="runs_batch", column="finished_at"),
        db.grant("runs_batch", rights="SELECT, INSERT, UPDATE (finished_at)"),
        db.grant("runs_batchitem", rights="SELECT, INSERT, UPDATE (code, detail, done_at)"),
        db.grant(
            "runs_recurring", rights="SELECT, INSERT, UPDATE (every_seconds, started_at, finished_at, result, failed)"
        ),
        db.grant_also("runs_run", columns="frozen_by"),
    ]
