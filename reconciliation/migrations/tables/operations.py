import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import runs.ids

TABLES = [
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
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('boot', 'pid', 'start_ticks'), name='worker_process_once'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Operation',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('state', models.CharField(choices=[('authorised', 'Waiting to run'), ('sending', 'Running'), ('succeeded', 'Completed'), ('failed', 'Failed'), ('accepted', 'Accepted, not final'), ('unknown', 'Not confirmed'), ('abandoned', 'Given up'), ('compensated', 'Reversed')], default='authorised', max_length=12)),
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
            ('settled_by', models.CharField(blank=True, help_text='answer, probe or person', max_length=20)),
            ('failure_code', models.CharField(blank=True, help_text="the other side's own code, or how absence was known", max_length=60)),
            ('failure', models.TextField(blank=True, help_text='the proof that nothing happened, in words')),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('settled_at', models.DateTimeField(blank=True, null=True)),
            ('decision', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='operation', to='approvals.decision')),
            ('proposal', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='operation', to='runs.proposal')),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='runs.run')),
            ('turn_at', models.DateTimeField(blank=True, help_text='its place in the line at a limited tool', null=True)),
            ('look_wanted_at', models.DateTimeField(blank=True, help_text='told of something: it is looked up by a question put after this', null=True)),
            ('key_held', models.BooleanField(db_default=False, default=False, help_text='failed, in dispute: its business key stays taken')),
            ('corrected', models.PositiveIntegerField(db_default=0, default=0)),
            ('corrected_at', models.DateTimeField(blank=True, null=True)),
            ('reverses', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reversed_by', to='reconciliation.operation')),
            ('other_reversed', models.BooleanField(db_default=False, default=False, help_text='the second record of two')),
            ('reverses_reference', models.CharField(blank=True, db_default='', default='', max_length=200)),
            ('anew_allowed', models.BooleanField(db_default=False, default=False, help_text='undone, and a person allowed that the same is done anew')),
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
                models.UniqueConstraint(condition=models.Q(('state__in', ('authorised', 'sending', 'unknown', 'accepted'))), fields=('run',), name='operation_one_open_per_run'),
                models.UniqueConstraint(condition=models.Q(('external_reference__isnull', False)), fields=('system', 'external_reference'), name='operation_reference_once'),
                models.UniqueConstraint(condition=models.Q(('reverses__isnull', False), ('state__in', ('authorised', 'sending', 'unknown', 'accepted', 'succeeded', 'compensated'))), fields=('reverses', 'reverses_reference'), name='operation_reversed_once'),
                models.UniqueConstraint(condition=models.Q(('state__in', ('authorised', 'sending', 'unknown', 'accepted', 'succeeded')), models.Q(('anew_allowed', False), ('state', 'compensated')), ('key_held', True), _connector='OR'), fields=('business_key',), name='operation_business_key_once'),
            ],
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
        name='TheirName',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('system', models.CharField(max_length=40)),
            ('name', models.CharField(max_length=200)),
            ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='their_names', to='reconciliation.operation')),
            ('given_up', models.BooleanField(db_default=False, default=False)),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('given_up', False)), fields=('system', 'name'), name='their_name_once'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Dependency',
        fields=[
            ('name', models.CharField(max_length=80, primary_key=True, serialize=False)),
            ('failures', models.PositiveIntegerField(db_default=0, default=0, help_text='of the system itself, in a row')),
            ('last_failure', models.TextField(blank=True, db_default='', default='')),
            ('last_failure_at', models.DateTimeField(blank=True, null=True)),
            ('open_since', models.DateTimeField(blank=True, help_text='since when nothing is called but trials', null=True)),
            ('ask_at', models.DateTimeField(blank=True, help_text='when one call may try whether it answers again', null=True)),
            ('trial_until', models.DateTimeField(blank=True, help_text='one call is trying; lapses with its worker', null=True)),
            ('not_before', models.DateTimeField(blank=True, help_text='the other side asked to be left alone until', null=True)),
            ('free_at', models.DateTimeField(blank=True, help_text='when the next evenly spaced call is due', null=True)),
            ('line_at', models.DateTimeField(blank=True, help_text='the end of the line of those that wait', null=True)),
        ],
        options={
            'verbose_name_plural': 'dependencies',
            'constraints': [
                models.CheckConstraint(condition=models.Q(models.Q(('open_since__isnull', True), ('trial_until__isnull', True)), models.Q(('ask_at__isnull', False), ('open_since__isnull', False)), _connector='OR'), name='dependency_open_says_when'),
            ],
        },
    ),
    migrations.CreateModel(
        name='ResourceHold',
        fields=[
            ('name', models.CharField(max_length=250, primary_key=True, serialize=False)),
            ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='reconciliation.operation')),
        ],
    ),
]
