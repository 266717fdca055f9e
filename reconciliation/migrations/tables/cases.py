import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import runs.ids

TABLES = [
    migrations.CreateModel(
        name='Case',
        fields=[
            ('number', models.BigAutoField(primary_key=True, serialize=False)),
            ('key', models.UUIDField(default=runs.ids.new_id, editable=False, unique=True)),
            ('kind', models.CharField(choices=[('not_confirmed', 'Not confirmed'), ('different', 'Recorded differently'), ('other_amount', 'Another amount recorded'), ('other_account', 'On another account'), ('duplicate', 'Recorded more than once'), ('missing_there', 'Here, and not there'), ('missing_here', 'There, and not here'), ('doubted', 'Our record is doubted'), ('not_undone', 'To be undone, and could not be')], max_length=16)),
            ('state', models.CharField(choices=[('open', 'Open'), ('claimed', 'Claimed'), ('resolved', 'Resolved')], default='open', max_length=10)),
            ('why', models.TextField()),
            ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('claimed_at', models.DateTimeField(blank=True, null=True)),
            ('verdict', models.CharField(blank=True, choices=[('happened', 'It happened'), ('differently', 'It happened differently'), ('did_not', 'It did not happen'), ('twice', 'It happened twice'), ('noted', 'Noted; put right outside'), ('stands', 'Our record is right'), ('by_probe', 'Settled by asking')], max_length=12)),
            ('evidence', models.TextField(blank=True)),
            ('resolved_at', models.DateTimeField(blank=True, null=True)),
            ('claimed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('resolved_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='cases', to='reconciliation.operation')),
            ('confirmed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('doubts', models.JSONField(db_default=[], default=list)),
        ],
        options={
            'permissions': [('settle_case', 'Can claim and settle reconciliation cases')],
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('state', 'resolved'), _negated=True), fields=('operation', 'kind'), name='case_one_open'),
                models.CheckConstraint(condition=models.Q(models.Q(('resolved_at__isnull', False), ('resolved_by__isnull', False), ('state', 'resolved'), models.Q(('verdict', ''), _negated=True)), models.Q(models.Q(('state', 'resolved'), _negated=True), ('resolved_at__isnull', True), ('verdict', '')), _connector='OR'), name='case_resolved_iff_verdict'),
                models.CheckConstraint(condition=models.Q(models.Q(('claimed_at__isnull', False), ('claimed_by__isnull', False), ('state', 'claimed')), models.Q(('state', 'claimed'), _negated=True), _connector='OR'), name='case_claimed_iff_owner'),
                models.CheckConstraint(condition=models.Q(('confirmed_by__isnull', True), models.Q(('state', 'resolved'), models.Q(('confirmed_by', models.F('resolved_by')), _negated=True)), _connector='OR'), name='case_confirmed_by_another'),
            ],
        },
    ),
    migrations.CreateModel(
        name='ProposedVerdict',
        fields=[
            ('number', models.BigAutoField(primary_key=True, serialize=False)),
            ('verdict', models.CharField(choices=[('happened', 'It happened'), ('differently', 'It happened differently'), ('did_not', 'It did not happen'), ('twice', 'It happened twice'), ('noted', 'Noted; put right outside'), ('stands', 'Our record is right'), ('by_probe', 'Settled by asking')], max_length=12)),
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
    migrations.CreateModel(
        name='Correction',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('number', models.PositiveIntegerField(help_text='counted from 1 for each operation')),
            ('source', models.CharField(choices=[('authorised', 'Waiting to run'), ('sending', 'Running'), ('succeeded', 'Completed'), ('failed', 'Failed'), ('accepted', 'Accepted, not final'), ('unknown', 'Not confirmed'), ('abandoned', 'Given up'), ('compensated', 'Reversed')], max_length=12)),
            ('target', models.CharField(choices=[('authorised', 'Waiting to run'), ('sending', 'Running'), ('succeeded', 'Completed'), ('failed', 'Failed'), ('accepted', 'Accepted, not final'), ('unknown', 'Not confirmed'), ('abandoned', 'Given up'), ('compensated', 'Reversed')], max_length=12)),
            ('before', models.JSONField(help_text='what our record said until then')),
            ('evidence', models.TextField()),
            ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('case', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='correction', to='reconciliation.case')),
            ('confirmed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('corrected_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='corrections', to='reconciliation.operation')),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(fields=('operation', 'number'), name='correction_number_once'),
                models.CheckConstraint(condition=models.Q(('source__in', ('succeeded', 'failed')), ('target__in', ('succeeded', 'failed'))), name='correction_of_settled'),
                models.CheckConstraint(condition=models.Q(('confirmed_by__isnull', True), models.Q(('confirmed_by', models.F('corrected_by')), _negated=True), _connector='OR'), name='correction_confirmed_by_another'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Reversal',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('reference', models.CharField(help_text="which of the other side's records is undone", max_length=200)),
            ('effect', models.JSONField(help_text='of the tool that undoes, as its declaration worked it out')),
            ('tool', models.CharField(max_length=80)),
            ('origin', models.CharField(choices=[('operator', 'An operator'), ('case', 'A case'), ('cancelled', 'A cancelled run'), ('failed', 'A failed run')], max_length=10)),
            ('reason', models.TextField()),
            ('due_at', models.DateTimeField(blank=True, help_text='something is to be done about it', null=True)),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('ended_at', models.DateTimeField(blank=True, null=True)),
            ('result', models.CharField(blank=True, choices=[('done', 'Reversed'), ('rejected', 'Rejected'), ('cancelled', 'Cancelled'), ('failed', 'Not reversed'), ('dropped', 'Not proposed')], max_length=10)),
            ('what', models.TextField(blank=True, help_text='what came of it, in a sentence')),
            ('after', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='then', to='reconciliation.reversal')),
            ('case', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reversals', to='reconciliation.case')),
            ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reversals', to='reconciliation.operation')),
            ('proposed_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('run', models.OneToOneField(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reversal', to='runs.run')),
            ('tries', models.PositiveIntegerField(db_default=0, default=0, help_text='that failed, of what is due, in a row')),
            ('problem', models.TextField(blank=True, db_default='', default='', help_text='why the last of them failed')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='reversal_due'),
            ],
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('operation',), name='reversal_one_living'),
                models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('result', '')), models.Q(('ended_at__isnull', False), models.Q(('result', ''), _negated=True)), _connector='OR'), name='reversal_ended_iff_result'),
            ],
        },
    ),
    migrations.CreateModel(
        name='CaseNotice',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('stage', models.CharField(choices=[('new', 'New'), ('ageing', 'Still open')], max_length=8)),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('due_at', models.DateTimeField(help_text='when it is sent, or tried again')),
            ('tries', models.PositiveIntegerField(db_default=0, default=0)),
            ('result', models.CharField(blank=True, choices=[('sent', 'Sent'), ('not_needed', 'Not Needed'), ('not_wanted', 'Not Wanted'), ('no_address', 'No Address'), ('given_up', 'Given Up')], db_default='', max_length=12)),
            ('ended_at', models.DateTimeField(blank=True, null=True)),
            ('case', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notices', to='reconciliation.case')),
            ('recipient', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['due_at'], name='case_notice_due'),
            ],
            'constraints': [
                models.UniqueConstraint(fields=('case', 'recipient', 'stage'), name='case_notice_once'),
                models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('result', '')), models.Q(models.Q(('result', ''), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='case_notice_ended_iff_result'),
            ],
        },
    ),
]
