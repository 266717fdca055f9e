import datetime

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import runs.ids

TABLES = [
    migrations.CreateModel(
        name='ApprovalRequest',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('changes', models.JSONField(default=list, help_text='[{key, label, old, new}] against the superseded request')),
            ('state', models.CharField(choices=[('open', 'Waiting'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('expired', 'Expired'), ('superseded', 'Out of date'), ('withdrawn', 'Withdrawn'), ('sent_back', 'Sent back'), ('spent', 'Carried out'), ('stale', 'Out of date'), ('revoked', 'No longer allowed')], default='open', max_length=12)),
            ('ask', models.CharField(help_text='the one-sentence ask', max_length=300)),
            ('action_digest', models.CharField(max_length=64)),
            ('binding_digest', models.CharField(max_length=64)),
            ('page', models.JSONField(help_text='[{key, label, value}] of everything bound, as displayed')),
            ('page_digest', models.CharField(max_length=64)),
            ('rules', models.JSONField(help_text='[{id, text}] of the rules that ask')),
            ('group', models.CharField(help_text='the first that is asked; who may vote is in the stages', max_length=150)),
            ('quorum', models.PositiveSmallIntegerField(default=1, help_text='how many people in all stages together')),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('respond_by', models.DateTimeField(help_text='people answer until then')),
            ('valid_until', models.DateTimeField(help_text='an approval may be used until then')),
            ('closed_at', models.DateTimeField(blank=True, help_text='when it stopped being open', null=True)),
            ('close_reason', models.TextField(blank=True)),
            ('proposal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='approval_requests', to='runs.proposal')),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='approval_requests', to='runs.run')),
            ('supersedes', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='superseded_by', to='approvals.approvalrequest')),
            ('policy_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion')),
            ('stopped_for', models.DurationField(db_default=datetime.timedelta(0), default=datetime.timedelta, help_text='how much later than first asked `respond_by` is: freezes stop that clock')),
            ('confirm', models.CharField(db_default='click', default='click', help_text='what a yes takes: click, retype, reauthenticate', max_length=14)),
            ('closed_by', models.ForeignKey(blank=True, help_text='who ended it, unless votes did', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('clock', models.CharField(db_default='elapsed', default='elapsed', help_text='elapsed or working time', max_length=8)),
            ('when_late', models.CharField(db_default='expire', default='expire', help_text='expire or reject', max_length=8)),
            ('amount_minor', models.BigIntegerField(blank=True, editable=False, null=True)),
            ('currency', models.CharField(blank=True, db_default='', default='', editable=False, max_length=3)),
            ('words', models.TextField(blank=True, db_default='', default='', editable=False, help_text='what it is searched by: customer, subject, sentence')),
        ],
        options={
            'permissions': [('vote', 'Can approve and reject'), ('reassign', 'Can hand requests on and add approvers')],
            'indexes': [
                models.Index(fields=['-created_at'], name='request_newest'),
                models.Index(condition=models.Q(('state', 'open')), fields=['action_digest'], name='request_open_same'),
                models.Index(condition=models.Q(('state', 'open')), fields=['group', 'respond_by', 'id'], name='request_open_group'),
                models.Index(condition=models.Q(('closed_at__isnull', False)), fields=['-closed_at', '-id'], name='request_closed'),
                models.Index(condition=models.Q(('state', 'open')), fields=['currency', 'amount_minor', 'id'], name='request_open_amount'),
                models.Index(fields=['currency', 'amount_minor', 'id'], name='request_amount'),
                models.Index(condition=models.Q(('state', 'open')), fields=['respond_by', 'id', 'created_at'], name='request_open_soonest'),
            ],
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('run',), name='request_one_open_per_run'),
                models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('state', 'open')), models.Q(models.Q(('state', 'open'), _negated=True), ('closed_at__isnull', False)), _connector='OR'), name='request_open_iff_not_closed'),
                models.CheckConstraint(condition=models.Q(('quorum__gte', 1)), name='request_quorum_positive'),
                models.CheckConstraint(condition=models.Q(('confirm__in', ['click', 'retype', 'reauthenticate'])), name='request_confirm_known'),
                models.CheckConstraint(condition=models.Q(('state__in', ['open', 'approved', 'rejected', 'expired', 'superseded', 'withdrawn', 'sent_back', 'spent', 'stale', 'revoked'])), name='request_state_known'),
                models.CheckConstraint(condition=models.Q(models.Q(('state', 'sent_back'), _negated=True), models.Q(('close_reason__regex', '^\\s*$'), _negated=True), _connector='OR'), name='request_sent_back_has_reason'),
                models.CheckConstraint(condition=models.Q(('clock__in', ['elapsed', 'working'])), name='request_clock_known'),
                models.CheckConstraint(condition=models.Q(('when_late__in', ['expire', 'reject'])), name='request_late_is_no'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Stage',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('position', models.PositiveSmallIntegerField()),
            ('name', models.CharField(max_length=150)),
            ('groups', models.JSONField(default=list, help_text='names; whose members may answer')),
            ('conditions', models.JSONField(default=dict, help_text='on the person: within_limit, team, region')),
            ('quorum', models.PositiveSmallIntegerField()),
            ('reject_at', models.PositiveSmallIntegerField(default=1, help_text='so many who say no end it')),
            ('in_turn', models.BooleanField(default=False, help_text='opens when those before it have their people')),
            ('added_why', models.TextField(blank=True)),
            ('also', models.JSONField(default=list, help_text='groups that an escalation asks as well')),
            ('opened_at', models.DateTimeField(blank=True, null=True)),
            ('met_at', models.DateTimeField(blank=True, null=True)),
            ('added_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('handed_group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group')),
            ('handed_user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='stages', to='approvals.approvalrequest')),
        ],
        options={
            'ordering': ['position'],
            'indexes': [
                models.Index(condition=models.Q(('met_at__isnull', True), ('opened_at__isnull', False)), fields=['request'], name='stage_asked_now'),
            ],
            'constraints': [
                models.UniqueConstraint(fields=('request', 'position'), name='stage_once'),
                models.CheckConstraint(condition=models.Q(('quorum__gte', 1), ('reject_at__gte', 1)), name='stage_people_needed'),
                models.CheckConstraint(condition=models.Q(('handed_user__isnull', True), ('handed_group__isnull', True), _connector='OR'), name='stage_handed_to_one'),
                models.CheckConstraint(condition=models.Q(models.Q(('added_by__isnull', True), ('person__isnull', True)), models.Q(('added_by__isnull', False), ('also', []), ('groups', []), ('in_turn', False), ('person__isnull', False), ('quorum', 1)), _connector='OR'), name='stage_person_iff_added'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Prompt',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('kind', models.CharField(choices=[('remind', 'Remind'), ('escalate', 'Escalate')], max_length=8)),
            ('group', models.CharField(blank=True, help_text='who is asked as well', max_length=150)),
            ('asked_for', models.DateTimeField(help_text='when it was due at first')),
            ('due_at', models.DateTimeField(help_text='the same, later by what freezes have stopped the clock')),
            ('ended_at', models.DateTimeField(blank=True, null=True)),
            ('result', models.CharField(blank=True, choices=[('done', 'Done'), ('not_needed', 'Not Needed')], max_length=10)),
            ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='prompts', to='approvals.approvalrequest')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['due_at'], name='prompt_due'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(models.Q(('group', ''), ('kind', 'remind')), models.Q(('kind', 'escalate'), models.Q(('group', ''), _negated=True)), _connector='OR'), name='prompt_group_iff_escalation'),
                models.CheckConstraint(condition=models.Q(('due_at__gte', models.F('asked_for'))), name='prompt_only_later'),
                models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('result', '')), models.Q(models.Q(('result', ''), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='prompt_ended_iff_result'),
            ],
        },
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
            ('confirmed', models.CharField(db_default='click', default='click', help_text='what the yes came with, as the request takes it', max_length=14)),
            ('instead_of', models.ForeignKey(blank=True, help_text='who was away', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('stage', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='votes', to='approvals.stage')),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(fields=('request', 'principal'), name='vote_once'),
                models.CheckConstraint(condition=models.Q(models.Q(('choice', 'reject'), _negated=True), models.Q(('comment__regex', '^\\s*$'), _negated=True), _connector='OR'), name='vote_reject_has_reason'),
                models.UniqueConstraint(condition=models.Q(('instead_of__isnull', False)), fields=('request', 'instead_of'), name='vote_once_instead'),
                models.CheckConstraint(condition=models.Q(('instead_of__isnull', True), models.Q(('principal', models.F('instead_of')), _negated=True), _connector='OR'), name='vote_not_instead_of_self'),
            ],
        },
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
        name='Decision',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('kind', models.CharField(choices=[('policy', 'Policy'), ('people', 'People'), ('standing', 'Standing')], max_length=8)),
            ('approved', models.BooleanField()),
            ('rules', models.JSONField(help_text='[{id, text}] of the rules that decided, or that asked')),
            ('binding_digest', models.CharField(max_length=64)),
            ('decided_at', models.DateTimeField()),
            ('valid_until', models.DateTimeField()),
            ('proposal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='runs.proposal')),
            ('request', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decision', to='approvals.approvalrequest')),
            ('policy_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policyversion')),
            ('standing', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='approvals.standingapproval')),
        ],
        options={
            'constraints': [
                models.CheckConstraint(condition=models.Q(('kind', 'people'), ('approved', True), _connector='OR'), name='decision_policy_only_allows'),
                models.UniqueConstraint(condition=models.Q(('kind', 'policy')), fields=('proposal',), name='decision_policy_once'),
                models.CheckConstraint(condition=models.Q(models.Q(('kind', 'people'), ('request__isnull', False)), models.Q(models.Q(('kind', 'people'), _negated=True), ('request__isnull', True)), _connector='OR'), name='decision_people_iff_request'),
                models.CheckConstraint(condition=models.Q(models.Q(('kind', 'standing'), ('standing__isnull', False)), models.Q(models.Q(('kind', 'standing'), _negated=True), ('standing__isnull', True)), _connector='OR'), name='decision_standing_iff_approval'),
                models.UniqueConstraint(condition=models.Q(('kind', 'standing')), fields=('proposal',), name='decision_standing_once'),
            ],
        },
    ),
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
            'indexes': [
                models.Index(fields=['by', 'value', 'currency', 'at'], name='tally_counted'),
            ],
            'constraints': [
                models.UniqueConstraint(fields=('proposal', 'by'), name='tally_once'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Remark',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('kind', models.CharField(choices=[('comment', 'Comment'), ('question', 'Question'), ('answer', 'Answer')], max_length=8)),
            ('text', models.TextField()),
            ('asked_of', models.CharField(blank=True, choices=[('requester', 'Whoever raised this'), ('support', 'Support staff')], help_text='who is to answer a question', max_length=9)),
            ('channel', models.CharField(help_text='page, api, command', max_length=20)),
            ('at', models.DateTimeField()),
            ('answers', models.OneToOneField(blank=True, help_text='the question', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='answer', to='approvals.remark')),
            ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='remarks', to='approvals.approvalrequest')),
        ],
        options={
            'indexes': [
                models.Index(fields=['request', 'at'], name='remark_of_request'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(('text__regex', '^\\s*$'), _negated=True), name='remark_has_text'),
                models.CheckConstraint(condition=models.Q(models.Q(('answers__isnull', False), ('kind', 'answer')), models.Q(models.Q(('kind', 'answer'), _negated=True), ('answers__isnull', True)), _connector='OR'), name='remark_answers_iff_answer'),
                models.CheckConstraint(condition=models.Q(models.Q(('kind', 'question'), models.Q(('asked_of', ''), _negated=True)), models.Q(models.Q(('kind', 'question'), _negated=True), ('asked_of', '')), _connector='OR'), name='remark_asked_of_iff_question'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Claim',
        fields=[
            ('request', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='claim', serialize=False, to='approvals.approvalrequest')),
            ('at', models.DateTimeField()),
            ('until', models.DateTimeField(help_text='it lapses then by itself')),
            ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
        ],
    ),
]
