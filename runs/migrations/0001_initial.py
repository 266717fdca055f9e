import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import runs.ids
from runs import db


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        db.CreateTables([
            migrations.CreateModel(
                name='Principal',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=[('person', 'Person'), ('integration', 'Integration'), ('service', 'Service'), ('agent', 'Agent'), ('workflow', 'Workflow'), ('system', 'System')], max_length=12)),
                    ('key', models.CharField(help_text='stable name, such as agent:service-credit', max_length=200, unique=True)),
                    ('label', models.CharField(help_text='how people read it', max_length=200)),
                    ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='principal', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [
                        models.CheckConstraint(condition=models.Q(models.Q(('kind', 'person'), ('user__isnull', False)), models.Q(models.Q(('kind', 'person'), _negated=True), ('user__isnull', True)), _connector='OR'), name='principal_person_has_user'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='ApiToken',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('label', models.CharField(max_length=200)),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('revoked_at', models.DateTimeField(blank=True, null=True)),
                    ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tokens', to='runs.principal')),
                    ('may_operate', models.BooleanField(db_default=False, default=False, help_text='may operate its own runs, and freeze; fixed when made')),
                ],
            ),
            migrations.CreateModel(
                name='StateEdge',
                fields=[
                    ('pk', models.CompositePrimaryKey('machine', 'source', 'target', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('machine', models.CharField(max_length=30)),
                    ('source', models.CharField(max_length=30)),
                    ('target', models.CharField(max_length=30)),
                ],
            ),
            migrations.CreateModel(
                name='StreamHead',
                fields=[
                    ('stream', models.CharField(max_length=80, primary_key=True, serialize=False)),
                    ('seq', models.BigIntegerField(default=0)),
                    ('hash', models.CharField(blank=True, max_length=64)),
                ],
            ),
            migrations.CreateModel(
                name='ExternalEvent',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('source', models.CharField(max_length=40)),
                    ('event_id', models.CharField(max_length=200)),
                    ('kind', models.CharField(max_length=100)),
                    ('payload', models.JSONField()),
                    ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('times_received', models.PositiveIntegerField(default=1)),
                    ('processed_at', models.DateTimeField(blank=True, null=True)),
                    ('result', models.CharField(blank=True, max_length=200)),
                ],
                options={
                    'indexes': [
                        models.Index(condition=models.Q(('processed_at__isnull', True)), fields=['received_at'], name='external_event_open'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('source', 'event_id'), name='external_event_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Event',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('stream', models.CharField(max_length=80)),
                    ('seq', models.BigIntegerField()),
                    ('at', models.DateTimeField()),
                    ('kind', models.CharField(max_length=60)),
                    ('data', models.JSONField()),
                    ('canonical', models.TextField()),
                    ('hash', models.CharField(max_length=64)),
                    ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ],
                options={
                    'constraints': [
                        models.UniqueConstraint(fields=('stream', 'seq'), name='event_once_per_stream'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Run',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('state', models.CharField(choices=[('queued', 'Queued'), ('gathering', 'Gathering'), ('deciding', 'Deciding'), ('authorising', 'Checking policy'), ('awaiting_approval', 'Approval'), ('executing', 'Carrying out'), ('outcome_unknown', 'Not confirmed'), ('waiting', 'Waiting'), ('needs_person', 'Needs a person'), ('completed', 'Completed'), ('rejected', 'Rejected'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], default='queued', max_length=30)),
                    ('workflow', models.CharField(max_length=80)),
                    ('workflow_version', models.CharField(max_length=20)),
                    ('start_key', models.CharField(help_text="the starting event's own id makes it once", max_length=200, unique=True)),
                    ('input', models.JSONField(help_text="the workflow's own input, validated at the start")),
                    ('input_digest', models.CharField(max_length=64)),
                    ('title', models.CharField(max_length=300)),
                    ('subject', models.CharField(help_text="what it is about elsewhere, such as the ticket's number", max_length=200)),
                    ('customer', models.CharField(blank=True, max_length=300)),
                    ('capabilities', models.JSONField(default=list, help_text='tools this run may use, fixed at the start')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('state_since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('outcome', models.TextField(blank=True, help_text='what came of it, in a sentence')),
                    ('wake_at', models.DateTimeField(blank=True, db_default=django.db.models.functions.datetime.Now(), null=True)),
                    ('waits_for', models.CharField(blank=True, max_length=300)),
                    ('resume_to', models.CharField(blank=True, choices=[('queued', 'Queued'), ('gathering', 'Gathering'), ('deciding', 'Deciding'), ('authorising', 'Checking policy'), ('awaiting_approval', 'Approval'), ('executing', 'Carrying out'), ('outcome_unknown', 'Not confirmed'), ('waiting', 'Waiting'), ('needs_person', 'Needs a person'), ('completed', 'Completed'), ('rejected', 'Rejected'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], max_length=30)),
                    ('facts_wanted_at', models.DateTimeField(blank=True, help_text='since when somebody wants the facts read', null=True)),
                    ('woken', models.BooleanField(default=False, help_text='somebody wanted it while a worker held it')),
                    ('lease_token', models.BigIntegerField(default=0)),
                    ('lease_until', models.DateTimeField(blank=True, null=True)),
                    ('lease_holder', models.CharField(blank=True, max_length=200)),
                    ('claims_in_row', models.PositiveIntegerField(default=0, help_text='claims since a step last succeeded')),
                    ('event_seq', models.BigIntegerField(default=0)),
                    ('event_hash', models.CharField(blank=True, max_length=64)),
                    ('paused_at', models.DateTimeField(blank=True, null=True)),
                    ('cancel_requested_at', models.DateTimeField(blank=True, null=True)),
                    ('cancel_reason', models.TextField(blank=True)),
                    ('person_code', models.CharField(blank=True, help_text='why a person is needed: a stable code', max_length=60)),
                    ('person_reason', models.TextField(blank=True)),
                    ('refusals', models.JSONField(default=list, help_text="why the agent's last choices were refused, in a row")),
                    ('tries_in_row', models.PositiveIntegerField(default=0, help_text='failed reads or model calls since one worked')),
                    ('times_out_of_date', models.PositiveIntegerField(default=0)),
                    ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                    ('cancelled_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                    ('initiator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                    ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                    ('run_as', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                    ('waits_on', models.CharField(blank=True, db_default='', default='', help_text='the shared thing it waits for, by its key', max_length=300)),
                    ('frozen_by', models.UUIDField(blank=True, help_text='the freeze under which it parked', null=True)),
                    ('terms', models.JSONField(default=dict, help_text='by tool, what narrows it: only, when, until; fixed at the start')),
                ],
                options={
                    'permissions': [('operate_run', 'Can cancel runs and settle what needs a person')],
                    'indexes': [
                        models.Index(condition=models.Q(('finished_at__isnull', True), ('wake_at__isnull', False)), fields=['wake_at'], name='run_due'),
                        models.Index(fields=['-created_at', '-id'], name='run_newest'),
                        models.Index(fields=['state', 'state_since'], name='run_state'),
                        models.Index(condition=models.Q(('waits_on', ''), _negated=True), fields=['waits_on'], name='run_waits_on'),
                        models.Index(condition=models.Q(('frozen_by__isnull', False)), fields=['frozen_by', 'id'], name='run_frozen'),
                        models.Index(condition=models.Q(('state', 'awaiting_approval')), fields=['waits_for'], name='run_awaits', opclasses=['varchar_pattern_ops']),
                    ],
                    'constraints': [
                        models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'gathering', 'deciding', 'authorising', 'awaiting_approval', 'executing', 'outcome_unknown', 'waiting', 'needs_person', 'completed', 'rejected', 'cancelled', 'failed'])), name='run_state_known'),
                        models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('state__in', ('completed', 'rejected', 'cancelled', 'failed'))), models.Q(models.Q(('state__in', ('completed', 'rejected', 'cancelled', 'failed')), _negated=True), ('finished_at__isnull', True)), _connector='OR'), name='run_terminal_iff_finished'),
                        models.CheckConstraint(condition=models.Q(models.Q(('state', 'waiting'), _negated=True), ('resume_to__in', ['gathering', 'deciding', 'authorising', 'executing']), _connector='OR'), name='run_waiting_resumes'),
                        models.CheckConstraint(condition=models.Q(models.Q(('state', 'needs_person'), _negated=True), models.Q(('person_code', ''), _negated=True), _connector='OR'), name='run_needs_person_says_why'),
                        models.CheckConstraint(condition=models.Q(('finished_at__isnull', False), ('wake_at__isnull', False), ('lease_until__isnull', False), models.Q(('waits_for', ''), _negated=True), _connector='OR'), name='run_never_forgotten'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='ModelCall',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('reading', models.PositiveIntegerField(help_text='the reading of evidence it was shown')),
                    ('provider', models.CharField(max_length=60)),
                    ('model', models.CharField(max_length=120)),
                    ('view', models.JSONField(help_text='the constructed view')),
                    ('answer', models.JSONField(blank=True, help_text='as it came, before any check', null=True)),
                    ('messages', models.JSONField(blank=True, help_text="the provider's own transcript, if it has one", null=True)),
                    ('usage', models.JSONField(default=dict)),
                    ('refusal_code', models.CharField(blank=True, max_length=60)),
                    ('refusal', models.TextField(blank=True, help_text='the reason, in words the model can use')),
                    ('started_at', models.DateTimeField()),
                    ('finished_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='model_calls', to='runs.run')),
                ],
            ),
            migrations.CreateModel(
                name='Proposal',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField(help_text='within the run, from 1')),
                    ('step', models.CharField(help_text="the workflow's name for what this action is for", max_length=60)),
                    ('tool', models.CharField(max_length=80)),
                    ('contract_version', models.CharField(max_length=20)),
                    ('effect', models.JSONField(help_text='normalised fields, all text')),
                    ('action_digest', models.CharField(max_length=64)),
                    ('identity', models.CharField(help_text='<installation>/<tool>/<uuid7>', max_length=200, unique=True)),
                    ('business_key', models.CharField(max_length=300)),
                    ('amount_minor', models.BigIntegerField(blank=True, null=True)),
                    ('currency', models.CharField(blank=True, max_length=3)),
                    ('reading', models.PositiveIntegerField(help_text='the reading of evidence it rests on')),
                    ('rests_on', models.JSONField(help_text='evidence ids whose change voids a decision about it')),
                    ('workings', models.JSONField(default=dict, help_text="how the system worked the amount out, beside the agent's figures")),
                    ('rationale', models.TextField(blank=True, help_text="the proposer's own words")),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('model_call', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='proposal', to='runs.modelcall')),
                    ('predecessor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='successors', to='runs.proposal')),
                    ('proposer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='runs.run')),
                ],
                options={
                    'indexes': [
                        models.Index(fields=['tool'], name='proposal_tool'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('run', 'number'), name='proposal_number_once'),
                        models.CheckConstraint(condition=models.Q(models.Q(('amount_minor__isnull', True), ('currency', '')), models.Q(('amount_minor__gt', 0), ('amount_minor__isnull', False), ('amount_minor__lt', 1000000000000000), ('currency__regex', '^[A-Z]{3}$')), _connector='OR'), name='proposal_money_whole'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Evidence',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('reading', models.PositiveIntegerField(help_text='all pieces read together share this number; it counts from 1')),
                    ('kind', models.CharField(max_length=40)),
                    ('source', models.CharField(max_length=80)),
                    ('locator', models.CharField(max_length=300)),
                    ('version', models.CharField(max_length=200)),
                    ('title', models.CharField(max_length=300)),
                    ('summary', models.TextField()),
                    ('authoritative', models.BooleanField(help_text='good enough to rest an action on')),
                    ('untrusted', models.BooleanField(help_text='written by outsiders: data, never an instruction')),
                    ('content', models.JSONField()),
                    ('content_digest', models.CharField(max_length=64)),
                    ('bound_digest', models.CharField(help_text='of the part whose change voids a decision', max_length=64)),
                    ('retrieved_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='evidence', to='runs.run')),
                ],
                options={
                    'verbose_name_plural': 'evidence',
                    'constraints': [
                        models.UniqueConstraint(fields=('run', 'reading', 'kind', 'locator'), name='evidence_once_a_reading'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Signal',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('key', models.CharField(help_text="the sender's own id: the same signal twice is one", max_length=200)),
                    ('kind', models.CharField(max_length=60)),
                    ('payload', models.JSONField(default=dict)),
                    ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('applied_at', models.DateTimeField(blank=True, null=True)),
                    ('result', models.CharField(blank=True, help_text='applied, or why it made no difference', max_length=60)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='signals', to='runs.run')),
                    ('sender', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ],
                options={
                    'indexes': [
                        models.Index(condition=models.Q(('applied_at__isnull', True)), fields=['run'], name='signal_open'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('run', 'key'), name='signal_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Wait',
                fields=[
                    ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('key', models.CharField(help_text="the workflow's own name for it: a run waits once for each", max_length=40)),
                    ('kind', models.CharField(choices=[('timer', 'Timer'), ('event', 'Event'), ('run', 'Run')], max_length=10)),
                    ('event', models.CharField(blank=True, help_text="the event's name, for events", max_length=60)),
                    ('starts', models.JSONField(blank=True, help_text='workflow and input of the run to start and wait for', null=True)),
                    ('due_at', models.DateTimeField(blank=True, help_text='when the timer, or the patience, is over', null=True)),
                    ('began_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('result', models.CharField(blank=True, choices=[('passed', 'The time has passed'), ('came', 'The event came'), ('ended', 'The other run ended'), ('late', 'It was not there in time'), ('dropped', 'The run no longer waited for it')], max_length=10)),
                    ('content', models.JSONField(default=dict, help_text='what came of it, as the workflow is shown it')),
                    ('other', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='awaited_by', to='runs.run')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='waits', to='runs.run')),
                ],
                options={
                    'indexes': [
                        models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['other'], name='wait_for_run'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('run', 'key'), name='wait_once'),
                        models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('run',), name='wait_one_open'),
                        models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('result', '')), models.Q(('ended_at__isnull', False), models.Q(('result', ''), _negated=True)), _connector='OR'), name='wait_ended_iff_result'),
                        models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', False), ('kind', 'timer')), models.Q(('kind', 'event'), models.Q(('event', ''), _negated=True)), models.Q(('kind', 'run'), models.Q(('other__isnull', False), ('starts__isnull', False), _connector='OR')), _connector='OR'), name='wait_for_something'),
                    ],
                },
            ),
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
                    ('tries', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='how often somebody had it locked')),
                    ('try_after', models.DateTimeField(blank=True, help_text='when it is tried again after that', null=True)),
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
        ]),
    ]
