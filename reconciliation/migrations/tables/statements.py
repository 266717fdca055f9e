import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import runs.ids

TABLES = [
    migrations.CreateModel(
        name='Statement',
        fields=[
            ('number', models.BigAutoField(primary_key=True, serialize=False)),
            ('key', models.UUIDField(default=runs.ids.new_id, editable=False, unique=True)),
            ('system', models.CharField(max_length=40)),
            ('source', models.CharField(choices=[('read', 'Read from the system'), ('file', 'Out of a file')], max_length=4)),
            ('since', models.DateTimeField(blank=True, help_text='of a file: the time of its first record', null=True)),
            ('until', models.DateTimeField(blank=True, help_text='the first moment after the period', null=True)),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('columns', models.JSONField(blank=True, help_text='of a file: where a line has what, and how', null=True)),
            ('due_at', models.DateTimeField(blank=True, help_text='when a worker may go on with it', null=True)),
            ('cursor', models.CharField(blank=True, help_text='up to where this part of the work is done', max_length=200)),
            ('pages', models.PositiveIntegerField(default=0, help_text='pages, or parts of a file, that are stored')),
            ('failures', models.PositiveIntegerField(default=0, help_text='in a row')),
            ('problem', models.TextField(blank=True, help_text='why it does not go on, in words')),
            ('read_at', models.DateTimeField(blank=True, null=True)),
            ('matched_at', models.DateTimeField(blank=True, null=True)),
            ('finished_at', models.DateTimeField(blank=True, null=True)),
            ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('stopped_at', models.DateTimeField(blank=True, help_text='it is left as it is until it is continued', null=True)),
            ('stopped_because', models.TextField(blank=True, help_text='why it was stopped last, as whoever did it gave it')),
            ('stopped_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='statement_due'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(models.Q(('matched_at__isnull', True), ('read_at__isnull', False), _connector='OR'), models.Q(('finished_at__isnull', True), ('matched_at__isnull', False), _connector='OR')), name='statement_parts_in_order'),
                models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', True), ('finished_at__isnull', False)), models.Q(('due_at__isnull', False), ('finished_at__isnull', True)), models.Q(('due_at__isnull', True), ('stopped_at__isnull', False)), models.Q(('columns__isnull', True), ('due_at__isnull', True), ('source', 'file')), _connector='OR'), name='statement_due_until_finished'),
                models.CheckConstraint(condition=models.Q(('stopped_at__isnull', True), models.Q(('due_at__isnull', True), ('finished_at__isnull', True), ('stopped_by__isnull', False), models.Q(('stopped_because', ''), _negated=True)), _connector='OR'), name='statement_stopped_for_a_reason'),
                models.CheckConstraint(condition=models.Q(models.Q(('since__isnull', False), ('source', 'read'), ('until__gt', models.F('since')), ('until__isnull', False)), ('source', 'file'), _connector='OR'), name='statement_of_a_period'),
            ],
        },
    ),
    migrations.CreateModel(
        name='StatementFile',
        fields=[
            ('statement', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='file', serialize=False, to='reconciliation.statement')),
            ('name', models.CharField(max_length=200)),
            ('content', models.BinaryField()),
            ('size', models.PositiveIntegerField()),
            ('digest', models.CharField(db_index=True, max_length=64)),
            ('encoding', models.CharField(max_length=12)),
            ('delimiter', models.CharField(max_length=1)),
            ('header', models.JSONField()),
        ],
    ),
    migrations.CreateModel(
        name='StatementLine',
        fields=[
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
            ('number', models.PositiveIntegerField(help_text='its place: in the file the line, else the order of reading')),
            ('key', models.CharField(max_length=200)),
            ('reference', models.CharField(blank=True, max_length=200)),
            ('identity', models.CharField(blank=True, max_length=200)),
            ('account', models.CharField(blank=True, max_length=200)),
            ('amount_minor', models.BigIntegerField(blank=True, null=True)),
            ('currency', models.CharField(blank=True, max_length=3)),
            ('at', models.DateTimeField(blank=True, null=True)),
            ('void', models.BooleanField(default=False, help_text='undone since, so it stands for nothing')),
            ('raw', models.JSONField(default=dict)),
            ('result', models.CharField(blank=True, choices=[('confirmed', 'As we have it'), ('different', 'Differing'), ('duplicate', 'Recorded more than once'), ('unconfirmed', 'Not confirmed here'), ('missing', 'Here only'), ('unknown', 'There only, under our name'), ('not_ours', 'Not ours'), ('unread', 'Unread')], max_length=12)),
            ('tells', models.TextField(blank=True, help_text='what differs, or why it could not be read')),
            ('judged_at', models.DateTimeField(blank=True, null=True)),
            ('operation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.operation')),
            ('statement', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='reconciliation.statement')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('judged_at__isnull', True)), fields=['statement', 'id'], name='statement_line_open'),
                models.Index(fields=['statement', 'number'], name='statement_line_order'),
                models.Index(fields=['statement', 'result', 'number'], name='statement_line_result'),
                models.Index(fields=['statement', 'identity'], name='statement_line_identity'),
                models.Index(fields=['statement', 'reference'], name='statement_line_reference'),
            ],
            'constraints': [
                models.UniqueConstraint(fields=('statement', 'key'), name='statement_line_once'),
                models.CheckConstraint(condition=models.Q(models.Q(('judged_at__isnull', True), ('result', '')), models.Q(models.Q(('result', ''), _negated=True), ('judged_at__isnull', False)), _connector='OR'), name='statement_line_judged_iff_result'),
                models.CheckConstraint(condition=models.Q(('result', 'unread'), models.Q(('amount_minor__gte', 0), ('amount_minor__isnull', False), ('at__isnull', False), models.Q(('currency', ''), _negated=True), models.Q(('reference', ''), _negated=True)), _connector='OR'), name='statement_line_read_or_not'),
            ],
        },
    ),
    migrations.CreateModel(
        name='StatementOurs',
        fields=[
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
            ('amount_minor', models.BigIntegerField()),
            ('currency', models.CharField(blank=True, max_length=3)),
            ('result', models.CharField(choices=[('confirmed', 'As we have it'), ('different', 'Differing'), ('duplicate', 'Recorded more than once'), ('unconfirmed', 'Not confirmed here'), ('missing', 'Here only'), ('unknown', 'There only, under our name'), ('not_ours', 'Not ours'), ('unread', 'Unread')], max_length=12)),
            ('tells', models.TextField(blank=True)),
            ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.operation')),
            ('statement', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ours', to='reconciliation.statement')),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(fields=('statement', 'operation'), name='statement_ours_once'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Difference',
        fields=[
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
            ('key', models.CharField(max_length=64, unique=True)),
            ('found_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('evidence', models.TextField(blank=True)),
            ('noted_at', models.DateTimeField(blank=True, null=True)),
            ('case', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.case')),
            ('noted_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('statement', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='differences', to='reconciliation.statement')),
            ('line', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.statementline')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('case__isnull', True), ('noted_at__isnull', True)), fields=['found_at'], name='difference_open'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(models.Q(('case__isnull', False), ('noted_at__isnull', True)), models.Q(('case__isnull', True), ('line__isnull', False)), _connector='OR'), name='difference_has_case_or_line'),
                models.CheckConstraint(condition=models.Q(models.Q(('evidence', ''), ('noted_at__isnull', True), ('noted_by__isnull', True)), models.Q(('noted_at__isnull', False), ('noted_by__isnull', False), models.Q(('evidence', ''), _negated=True)), _connector='OR'), name='difference_noted_with_evidence'),
            ],
        },
    ),
]
