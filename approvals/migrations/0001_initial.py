
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django_fsm
import runs.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=120)),
            ],
            options={
                'verbose_name_plural': 'policies',
            },
        ),
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
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('limit_minor__gte', 0), ('overrun_minor__gte', 0), ('reserved_minor__gte', 0), ('settled_minor__gte', 0)), name='allowance_not_negative'), models.CheckConstraint(condition=models.Q(('limit_minor__gte', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.F('reserved_minor'), '+', models.F('settled_minor')), '-', models.F('overrun_minor')))), name='allowance_within_limit')],
            },
        ),
        migrations.CreateModel(
            name='ApprovalRequest',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('changes', models.JSONField(default=list, help_text='[{key, label, old, new}] against the superseded request')),
                ('state', django_fsm.FSMField(choices=[('open', 'Waiting'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('expired', 'Expired'), ('superseded', 'Out of date'), ('withdrawn', 'Withdrawn'), ('spent', 'Carried out'), ('stale', 'Out of date'), ('revoked', 'No longer allowed')], default='open', max_length=12)),
                ('ask', models.CharField(help_text='the one-sentence ask', max_length=300)),
                ('action_digest', models.CharField(max_length=64)),
                ('binding_digest', models.CharField(max_length=64)),
                ('page', models.JSONField(help_text='[{key, label, value}] of everything bound, as displayed')),
                ('page_digest', models.CharField(max_length=64)),
                ('rules', models.JSONField(help_text='[{id, text}] of the rules that ask')),
                ('group', models.CharField(help_text='whose members may vote', max_length=150)),
                ('quorum', models.PositiveSmallIntegerField(default=1)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('respond_by', models.DateTimeField(help_text='people answer until then')),
                ('valid_until', models.DateTimeField(help_text='an approval may be used until then')),
                ('closed_at', models.DateTimeField(blank=True, help_text='when it stopped being open', null=True)),
                ('close_reason', models.TextField(blank=True)),
                ('proposal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='approval_requests', to='runs.proposal')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='approval_requests', to='runs.run')),
                ('supersedes', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='superseded_by', to='approvals.approvalrequest')),
            ],
            options={
                'permissions': [('vote', 'Can approve and reject')],
                'indexes': [
                    models.Index(condition=models.Q(('state', 'open')), fields=['respond_by'], name='request_open_due'),
                    models.Index(fields=['-created_at'], name='request_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('run',), name='request_one_open_per_run'),
                    models.CheckConstraint(condition=models.Q(('state__in', ['open', 'approved', 'rejected', 'expired', 'superseded', 'withdrawn', 'spent', 'stale', 'revoked'])), name='request_state_known'),
                    models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('state', 'open')), models.Q(models.Q(('state', 'open'), _negated=True), ('closed_at__isnull', False)), _connector='OR'), name='request_open_iff_not_closed'),
                    models.CheckConstraint(condition=models.Q(('quorum__gte', 1)), name='request_quorum_positive'),
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
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('policy', 'number'), name='policy_version_once'),
                ],
            },
        ),
        migrations.AddField(
            model_name='policy',
            name='active',
            field=models.ForeignKey(blank=True, help_text='the one in force', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion'),
        ),
        migrations.CreateModel(
            name='Decision',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('policy', 'Policy'), ('people', 'People')], max_length=8)),
                ('approved', models.BooleanField()),
                ('rules', models.JSONField(help_text='[{id, text}] of the rules that decided, or that asked')),
                ('binding_digest', models.CharField(max_length=64)),
                ('decided_at', models.DateTimeField()),
                ('valid_until', models.DateTimeField()),
                ('proposal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='runs.proposal')),
                ('request', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decision', to='approvals.approvalrequest')),
                ('policy_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('kind', 'people'), ('request__isnull', False)), models.Q(('kind', 'policy'), ('request__isnull', True)), _connector='OR'), name='decision_people_iff_request'),
                    models.CheckConstraint(condition=models.Q(('kind', 'people'), ('approved', True), _connector='OR'), name='decision_policy_only_allows'),
                    models.UniqueConstraint(condition=models.Q(('kind', 'policy')), fields=('proposal',), name='decision_policy_once'),
                ],
            },
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='policy_version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion'),
        ),
        migrations.CreateModel(
            name='Refusal',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('code', models.CharField(max_length=40)),
                ('detail', models.JSONField(default=dict)),
                ('channel', models.CharField(help_text='page, api, command', max_length=20)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refusals', to='approvals.approvalrequest')),
            ],
        ),
        migrations.CreateModel(
            name='Viewing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='viewings', to='approvals.approvalrequest')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'principal'), name='viewing_first_only'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Vote',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('choice', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject')], max_length=8)),
                ('comment', models.TextField(blank=True)),
                ('page_digest', models.CharField(help_text='of what the voter had before them', max_length=64)),
                ('binding_digest', models.CharField(max_length=64)),
                ('authenticated_by', models.CharField(help_text='how and when the session was authenticated', max_length=200)),
                ('group', models.CharField(help_text='the membership that gave the right', max_length=150)),
                ('channel', models.CharField(max_length=20)),
                ('at', models.DateTimeField()),
                ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='votes', to='approvals.approvalrequest')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'principal'), name='vote_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('choice', 'reject'), _negated=True), models.Q(('comment__regex', '^\\s*$'), _negated=True), _connector='OR'), name='vote_reject_has_reason'),
                ],
            },
        ),
    ]
