import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

import runs.ids

TABLES = [
    migrations.CreateModel(
        name='Allowance',
        fields=[
            ('key', models.CharField(max_length=300, primary_key=True, serialize=False)),
            ('label', models.CharField(max_length=300)),
            ('currency', models.CharField(max_length=3)),
            ('limit_minor', models.BigIntegerField()),
            ('reserved_minor', models.BigIntegerField(default=0, help_text='running and unknown')),
            ('settled_minor', models.BigIntegerField(default=0, help_text='known to have happened')),
            ('overrun_minor', models.BigIntegerField(default=0, help_text='raised only by settling at other actual values')),
            ('count_limit', models.PositiveIntegerField(blank=True, null=True)),
            ('reserved_count', models.PositiveIntegerField(db_default=0, default=0)),
            ('settled_count', models.PositiveIntegerField(db_default=0, default=0)),
        ],
        options={
            'constraints': [
                models.CheckConstraint(condition=models.Q(('limit_minor__gte', 0), ('overrun_minor__gte', 0), ('reserved_minor__gte', 0), ('settled_minor__gte', 0)), name='allowance_not_negative'),
                models.CheckConstraint(condition=models.Q(('limit_minor__gte', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.F('reserved_minor'), '+', models.F('settled_minor')), '-', models.F('overrun_minor')))), name='allowance_within_limit'),
                models.CheckConstraint(condition=models.Q(('count_limit__isnull', True), ('count_limit__gte', django.db.models.expressions.CombinedExpression(models.F('reserved_count'), '+', models.F('settled_count'))), _connector='OR'), name='allowance_within_count'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Policy',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('slug', models.SlugField(max_length=80, unique=True)),
            ('name', models.CharField(max_length=120)),
            ('active', models.ForeignKey(blank=True, help_text='the one in force', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion')),
        ],
        options={
            'verbose_name_plural': 'policies',
        },
    ),
    migrations.CreateModel(
        name='PolicyVersion',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('number', models.PositiveIntegerField()),
            ('rules', models.JSONField()),
            ('digest', models.CharField(max_length=64)),
            ('note', models.TextField(blank=True)),
            ('published_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='approvals.policy')),
            ('published_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('draft', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='version', to='approvals.policydraft')),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(fields=('policy', 'number'), name='policy_version_once'),
            ],
        },
    ),
    migrations.CreateModel(
        name='PolicyTool',
        fields=[
            ('tool', models.CharField(max_length=80, primary_key=True, serialize=False)),
            ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tools', to='approvals.policy')),
        ],
    ),
    migrations.CreateModel(
        name='PolicyDraft',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('state', models.CharField(choices=[('writing', 'Being written'), ('asked', 'Waiting for a second person'), ('published', 'Published'), ('discarded', 'Discarded')], default='writing', max_length=10)),
            ('revision', models.PositiveIntegerField(default=1)),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('asked_at', models.DateTimeField(blank=True, null=True)),
            ('reason', models.TextField(blank=True, help_text='why it was sent back last, or discarded')),
            ('closed_at', models.DateTimeField(blank=True, null=True)),
            ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('based_on', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion')),
            ('closed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='approvals.policy')),
        ],
        options={
            'permissions': [('edit_policy', 'Can write drafts of policies and ask for their publication'), ('publish_policy', 'Can publish what somebody else has written')],
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('state__in', ('writing', 'asked'))), fields=('policy',), name='draft_one_open_per_policy'),
                models.CheckConstraint(condition=models.Q(('state__in', ['writing', 'asked', 'published', 'discarded'])), name='draft_state_known'),
                models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('state__in', ('writing', 'asked'))), models.Q(models.Q(('state__in', ('writing', 'asked')), _negated=True), ('closed_at__isnull', False), ('closed_by__isnull', False)), _connector='OR'), name='draft_open_iff_not_closed'),
                models.CheckConstraint(condition=models.Q(models.Q(('state', 'asked'), _negated=True), models.Q(('asked_at__isnull', False), ('asked_by__isnull', False)), _connector='OR'), name='draft_asked_by_somebody'),
            ],
        },
    ),
    migrations.CreateModel(
        name='DraftRevision',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('number', models.PositiveIntegerField(help_text='within the draft, from 1')),
            ('document', models.JSONField(help_text='as `PolicyDocument.stored` gives it')),
            ('digest', models.CharField(max_length=64)),
            ('tools', models.JSONField(help_text='names of the tools the policy would govern, in order')),
            ('note', models.TextField(blank=True, help_text='why it changes; kept with the version')),
            ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('draft', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='revisions', to='approvals.policydraft')),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(fields=('draft', 'number'), name='draft_revision_once'),
            ],
        },
    ),
    migrations.CreateModel(
        name='StandingApproval',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('state', models.CharField(choices=[('asked', 'Not in force yet'), ('in_force', 'In force'), ('declined', 'Declined'), ('withdrawn', 'Withdrawn'), ('revoked', 'Revoked')], default='asked', max_length=10)),
            ('tool', models.CharField(max_length=80)),
            ('group', models.CharField(help_text='in whose name it is given', max_length=150)),
            ('only', models.JSONField(help_text='{variable: value}; an action that lacks one is never covered')),
            ('currency', models.CharField(max_length=3)),
            ('each_minor', models.BigIntegerField(help_text='the most of one action')),
            ('total_minor', models.BigIntegerField(help_text='the most of a period')),
            ('count', models.PositiveIntegerField(help_text='how many actions a period')),
            ('period', models.CharField(choices=[('whole', 'in all'), ('day', 'a day'), ('week', 'a week'), ('month', 'a month')], max_length=6)),
            ('starts_at', models.DateTimeField()),
            ('ends_at', models.DateTimeField()),
            ('reason', models.TextField()),
            ('one_is_enough', models.BooleanField(help_text='its author may put it in force alone')),
            ('asked_at', models.DateTimeField()),
            ('granted_at', models.DateTimeField(blank=True, null=True)),
            ('ended_at', models.DateTimeField(blank=True, null=True)),
            ('end_reason', models.TextField(blank=True)),
            ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('ended_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('granted_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('policy_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('state', 'in_force')), fields=['tool', 'currency'], name='standing_in_force'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(('state__in', ['asked', 'in_force', 'declined', 'withdrawn', 'revoked'])), name='standing_state_known'),
                models.CheckConstraint(condition=models.Q(('count__gt', 0), ('each_minor__gt', 0), ('ends_at__gt', models.F('starts_at')), ('total_minor__gte', models.F('each_minor')), ('currency__regex', '^[A-Z]{3}$')), name='standing_within_bounds'),
                models.CheckConstraint(condition=models.Q(('only', {}), _negated=True), name='standing_for_something'),
                models.CheckConstraint(condition=models.Q(models.Q(('granted_by__isnull', True), ('state__in', ['asked', 'declined', 'withdrawn'])), models.Q(('granted_at__isnull', False), ('granted_by__isnull', False), ('state__in', ['in_force', 'revoked'])), _connector='OR'), name='standing_granted_by_somebody'),
                models.CheckConstraint(condition=models.Q(('granted_by__isnull', True), ('one_is_enough', True), models.Q(('granted_by', models.F('asked_by')), _negated=True), _connector='OR'), name='standing_second_person'),
                models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('ended_by__isnull', False), ('state__in', ('declined', 'withdrawn', 'revoked'))), models.Q(models.Q(('state__in', ('declined', 'withdrawn', 'revoked')), _negated=True), ('ended_at__isnull', True), ('ended_by__isnull', True)), _connector='OR'), name='standing_ended_by_somebody'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Freeze',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('scope', models.CharField(help_text='all, tool:<name> or workflow:<name>', max_length=120)),
            ('reason', models.TextField()),
            ('since', models.DateTimeField()),
            ('lifted_at', models.DateTimeField(blank=True, null=True)),
            ('lift_reason', models.TextField(blank=True)),
            ('thaw_after', models.UUIDField(blank=True, help_text='the last request whose deadline was looked at', null=True)),
            ('thawed_at', models.DateTimeField(blank=True, null=True)),
            ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('lifted_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
        ],
        options={
            'permissions': [('freeze', 'Can freeze and lift freezes')],
            'indexes': [
                models.Index(condition=models.Q(('lifted_at__isnull', False), ('thawed_at__isnull', True)), fields=['lifted_at'], name='freeze_to_thaw'),
                models.Index(fields=['-since'], name='freeze_newest'),
            ],
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('lifted_at__isnull', True)), fields=('scope',), name='freeze_one_a_scope'),
                models.CheckConstraint(condition=models.Q(models.Q(('lifted_at__isnull', True), ('lifted_by__isnull', True), ('thawed_at__isnull', True)), models.Q(('lifted_at__isnull', False), ('lifted_by__isnull', False)), _connector='OR'), name='freeze_lifted_by_somebody'),
            ],
        },
    ),
]
