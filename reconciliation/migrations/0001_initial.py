
import django.db.models.deletion
import django.db.models.functions.datetime
import django_fsm
import runs.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('approvals', '0001_initial'),
        ('runs', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('state', django_fsm.FSMField(choices=[('authorised', 'Waiting to run'), ('sending', 'Running'), ('succeeded', 'Completed'), ('failed', 'Failed'), ('accepted', 'Accepted, not final'), ('unknown', 'Not confirmed'), ('abandoned', 'Never sent'), ('compensated', 'Reversed')], default='authorised', max_length=12)),
                ('tool', models.CharField(max_length=80)),
                ('contract_version', models.CharField(max_length=20)),
                ('system', models.CharField(max_length=40)),
                ('identity', models.CharField(max_length=200, unique=True)),
                ('business_key', models.CharField(max_length=300)),
                ('effect', models.JSONField()),
                ('amount_minor', models.BigIntegerField(blank=True, null=True)),
                ('currency', models.CharField(blank=True, max_length=3)),
                ('epoch', models.PositiveIntegerField(default=0, help_text='raised only after conclusive absence')),
                ('attempts_made', models.PositiveIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                ('unknown_since', models.DateTimeField(blank=True, null=True)),
                ('probes_made', models.PositiveIntegerField(default=0)),
                ('next_probe_at', models.DateTimeField(blank=True, null=True)),
                ('external_reference', models.CharField(blank=True, max_length=200, null=True)),
                ('actual', models.JSONField(blank=True, help_text='what the other side has recorded', null=True)),
                ('settled_by', models.CharField(blank=True, help_text='answer, probe, event or person', max_length=20)),
                ('failure_code', models.CharField(blank=True, help_text="the other side's own code, or how absence was known", max_length=60)),
                ('failure', models.TextField(blank=True, help_text='the proof that nothing happened, in words')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('decision', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='operation', to='approvals.decision')),
                ('proposal', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='operation', to='runs.proposal')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='runs.run')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('state__in', ('unknown', 'accepted'))), fields=['unknown_since'], name='operation_unknown'),
                    models.Index(condition=models.Q(('next_probe_at__isnull', False)), fields=['next_probe_at'], name='operation_probe_due'),
                    models.Index(fields=['run', 'created_at'], name='operation_by_run'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('state__in', ['authorised', 'sending', 'succeeded', 'failed', 'accepted', 'unknown', 'abandoned', 'compensated'])), name='operation_state_known'),
                    models.CheckConstraint(condition=models.Q(models.Q(('settled_at__isnull', False), ('state__in', ('succeeded', 'failed', 'abandoned', 'compensated'))), models.Q(models.Q(('state__in', ('succeeded', 'failed', 'abandoned', 'compensated')), _negated=True), ('settled_at__isnull', True)), _connector='OR'), name='operation_settled_iff_time'),
                    models.CheckConstraint(condition=models.Q(models.Q(('state', 'succeeded'), _negated=True), ('external_reference__isnull', False), _connector='OR'), name='operation_success_has_reference'),
                    models.UniqueConstraint(condition=models.Q(('state__in', ('authorised', 'sending', 'unknown', 'accepted', 'succeeded', 'compensated'))), fields=('business_key',), name='operation_business_key_once'),
                    models.UniqueConstraint(condition=models.Q(('state__in', ('authorised', 'sending', 'unknown', 'accepted'))), fields=('run',), name='operation_one_open_per_run'),
                    models.UniqueConstraint(condition=models.Q(('external_reference__isnull', False)), fields=('system', 'external_reference'), name='operation_reference_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Observation',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('source', models.CharField(choices=[('sender', "the call's answer"), ('probe', 'a lookup'), ('event', 'an event from the other side'), ('person', 'a person')], max_length=8)),
                ('finding', models.CharField(choices=[('found', 'exactly one, as sent'), ('different', 'one, but not as sent'), ('several', 'more than one'), ('absent', 'none'), ('unreachable', 'no answer'), ('refused', 'refused'), ('no_answer', 'no certain answer'), ('not_sent', 'never sent')], max_length=12)),
                ('conclusive', models.BooleanField(default=False)),
                ('summary', models.TextField()),
                ('raw', models.JSONField(default=dict)),
                ('asked_at', models.DateTimeField(help_text='when the question was put; absence counts from here')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='observations', to='reconciliation.operation')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['operation', 'at'], name='observation_by_operation'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Case',
            fields=[
                ('number', models.BigAutoField(primary_key=True, serialize=False)),
                ('key', models.UUIDField(default=runs.ids.new_id, editable=False, unique=True)),
                ('kind', models.CharField(choices=[('not_confirmed', 'Not confirmed'), ('different', 'Recorded differently'), ('duplicate', 'Recorded more than once')], max_length=16)),
                ('state', django_fsm.FSMField(choices=[('open', 'Open'), ('claimed', 'Claimed'), ('resolved', 'Resolved')], default='open', max_length=10)),
                ('why', models.TextField()),
                ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('claimed_at', models.DateTimeField(blank=True, null=True)),
                ('verdict', models.CharField(blank=True, choices=[('happened', 'It happened'), ('differently', 'It happened differently'), ('did_not', 'It did not happen'), ('twice', 'It happened twice'), ('noted', 'Noted; put right outside'), ('by_probe', 'Settled by asking')], max_length=12)),
                ('evidence', models.TextField(blank=True)),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('claimed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('resolved_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='cases', to='reconciliation.operation')),
            ],
            options={
                'permissions': [('settle_case', 'Can claim and settle reconciliation cases')],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('state', 'resolved'), _negated=True), fields=('operation', 'kind'), name='case_one_open'),
                    models.CheckConstraint(condition=models.Q(models.Q(('resolved_at__isnull', False), ('resolved_by__isnull', False), ('state', 'resolved'), models.Q(('verdict', ''), _negated=True)), models.Q(models.Q(('state', 'resolved'), _negated=True), ('resolved_at__isnull', True), ('verdict', '')), _connector='OR'), name='case_resolved_iff_verdict'),
                    models.CheckConstraint(condition=models.Q(models.Q(('claimed_at__isnull', False), ('claimed_by__isnull', False), ('state', 'claimed')), models.Q(('state', 'claimed'), _negated=True), _connector='OR'), name='case_claimed_iff_owner'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Reservation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('amount_minor', models.BigIntegerField()),
                ('state', models.CharField(choices=[('reserved', 'Reserved'), ('settled', 'Settled'), ('released', 'Released')], default='reserved', max_length=8)),
                ('allowance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.allowance')),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='reconciliation.operation')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('operation', 'allowance'), name='reservation_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='WorkerProcess',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('host', models.CharField(max_length=200)),
                ('boot', models.CharField(help_text='kernel boot id and pid namespace', max_length=80)),
                ('pid', models.PositiveIntegerField()),
                ('start_ticks', models.BigIntegerField()),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('boot', 'pid', 'start_ticks'), name='worker_process_once')],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('epoch', models.PositiveIntegerField()),
                ('wire_key', models.CharField(help_text='identity:epoch', max_length=220)),
                ('request', models.TextField(help_text='the canonical effect that was sent')),
                ('opened_at', models.DateTimeField()),
                ('send_before', models.DateTimeField(help_text='the worker does not start the call after this')),
                ('call_limit_seconds', models.FloatField()),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('result', models.CharField(blank=True, choices=[('done', 'done'), ('not_sent', 'never sent'), ('refused', 'refused'), ('overloaded', 'asked to wait'), ('ambiguous', 'no certain answer'), ('sender_gone', 'sender died')], max_length=12)),
                ('detail', models.TextField(blank=True)),
                ('answer', models.JSONField(blank=True, null=True)),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='reconciliation.operation')),
                ('sender', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='reconciliation.workerprocess')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('operation', 'number'), name='attempt_number_once'),
                    models.UniqueConstraint(condition=models.Q(('closed_at__isnull', True)), fields=('operation',), name='attempt_one_open'),
                    models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('result', '')), models.Q(('closed_at__isnull', False), models.Q(('result', ''), _negated=True)), _connector='OR'), name='attempt_closed_iff_result'),
                ],
            },
        ),
    ]
