import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import runs.ids

TABLES = [
    migrations.CreateModel(
        name='Absence',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('begins', models.DateTimeField()),
            ('ends', models.DateTimeField()),
            ('note', models.CharField(blank=True, max_length=300)),
            ('made_at', models.DateTimeField()),
            ('ended_at', models.DateTimeField(blank=True, help_text='it was ended early, or called off', null=True)),
            ('ended_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='absences', to=settings.AUTH_USER_MODEL)),
            ('stand_in', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='stands_in', to=settings.AUTH_USER_MODEL)),
        ],
        options={
            'permissions': [('arrange_absence', 'Can name stand-ins for others and set what they may approve')],
            'indexes': [
                models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['stand_in', 'ends'], name='absence_of_stand_in'),
                models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['person', 'ends'], name='absence_of_person'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(('ends__gt', models.F('begins'))), name='absence_has_length'),
                models.CheckConstraint(condition=models.Q(('person', models.F('stand_in')), _negated=True), name='absence_of_two_people'),
                models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('ended_by__isnull', True)), models.Q(('ended_at__isnull', False), ('ended_by__isnull', False)), _connector='OR'), name='absence_ended_by_somebody'),
            ],
        },
    ),
    migrations.CreateModel(
        name='Remit',
        fields=[
            ('user', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='remit', serialize=False, to=settings.AUTH_USER_MODEL)),
            ('team', models.CharField(blank=True, max_length=60)),
            ('region', models.CharField(blank=True, max_length=60)),
            ('limits', models.JSONField(default=dict, help_text='currency to minor units')),
        ],
    ),
    migrations.CreateModel(
        name='Preference',
        fields=[
            ('user', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
            ('mail', models.CharField(choices=[('at_once', 'At once, one mail for each request'), ('digest', 'Together, in one mail every few hours'), ('none', 'No mail')], default='at_once', max_length=8)),
            ('digest_hours', models.PositiveSmallIntegerField(default=4)),
            ('keys', models.BooleanField(db_default=True, default=True, help_text='single letters act on the pages of approvals')),
            ('zone', models.CharField(blank=True, db_default='', default='', help_text="empty: the browser's own", max_length=64)),
        ],
        options={
            'constraints': [
                models.CheckConstraint(condition=models.Q(('digest_hours__gte', 1), ('digest_hours__lte', 24)), name='preference_hours_in_a_day'),
            ],
        },
    ),
    migrations.CreateModel(
        name='SavedView',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
            ('name', models.CharField(max_length=60)),
            ('query', models.CharField(help_text='the list as its address writes it', max_length=1000)),
            ('is_default', models.BooleanField(default=False, help_text='what the list of approvals opens with')),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('removed_at', models.DateTimeField(blank=True, null=True)),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
        ],
        options={
            'constraints': [
                models.UniqueConstraint(condition=models.Q(('removed_at__isnull', True)), fields=('user', 'name'), name='saved_view_name_once'),
                models.UniqueConstraint(condition=models.Q(('is_default', True), ('removed_at__isnull', True)), fields=('user',), name='saved_view_one_default'),
            ],
        },
    ),
    migrations.CreateModel(
        name='BulkVote',
        fields=[
            ('id', models.UUIDField(default=runs.ids.new_id, editable=False, help_text='made with the page that asked', primary_key=True, serialize=False)),
            ('choice', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject')], max_length=8)),
            ('comment', models.TextField(blank=True)),
            ('authenticated_by', models.CharField(help_text='how and when the session was authenticated', max_length=200)),
            ('total', models.PositiveSmallIntegerField()),
            ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ('finished_at', models.DateTimeField(blank=True, help_text='when the last request had its result', null=True)),
            ('principal', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['created_at'], name='bulk_vote_open'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(models.Q(('choice', 'reject'), _negated=True), models.Q(('comment__regex', '^\\s*$'), _negated=True), _connector='OR'), name='bulk_reject_has_reason'),
            ],
        },
    ),
    migrations.CreateModel(
        name='BulkItem',
        fields=[
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
            ('page_digest', models.CharField(help_text='of what the voter had before them', max_length=64)),
            ('code', models.CharField(blank=True, help_text="as the vote's result; empty until it was tried", max_length=40)),
            ('detail', models.JSONField(default=dict)),
            ('done_at', models.DateTimeField(blank=True, null=True)),
            ('tries', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='how often somebody had it locked')),
            ('try_after', models.DateTimeField(blank=True, help_text='when it is tried again after that', null=True)),
            ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.approvalrequest')),
            ('bulk', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='items', to='approvals.bulkvote')),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('done_at__isnull', True)), fields=['bulk', 'id'], name='bulk_item_open'),
            ],
            'constraints': [
                models.CheckConstraint(condition=models.Q(models.Q(('code', ''), ('done_at__isnull', True)), models.Q(models.Q(('code', ''), _negated=True), ('done_at__isnull', False)), _connector='OR'), name='bulk_item_done_iff_result'),
                models.UniqueConstraint(fields=('bulk', 'request'), name='bulk_item_once'),
            ],
        },
    ),
]
