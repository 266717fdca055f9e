"""The inbox at work: saved views, votes on several requests at once, how people wish to work, and indexes."""

import django.db.models.deletion
import django.db.models.functions.datetime
import runs.ids
from django.conf import settings
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0012_chains_guards'),
        ('runs', '0006_batch_tries'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('code', ''), ('done_at__isnull', True)), models.Q(models.Q(('code', ''), _negated=True), ('done_at__isnull', False)), _connector='OR'), name='bulk_item_done_iff_result'),
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
        migrations.AddField(
            model_name='preference',
            name='keys',
            field=models.BooleanField(db_default=True, default=True, help_text='single letters act on the pages of approvals'),
        ),
        migrations.AddField(
            model_name='preference',
            name='zone',
            field=models.CharField(blank=True, db_default='', default='', help_text="empty: the browser's own", max_length=64),
        ),
        migrations.AddIndex(
            model_name='approvalrequest',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['group', 'respond_by', 'id'], name='request_open_group'),
        ),
        migrations.AddIndex(
            model_name='approvalrequest',
            index=models.Index(condition=models.Q(('closed_at__isnull', False)), fields=['-closed_at', '-id'], name='request_closed'),
        ),
        migrations.AddField(
            model_name='bulkitem',
            name='bulk',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='items', to='approvals.bulkvote'),
        ),
        migrations.AddIndex(
            model_name='bulkitem',
            index=models.Index(condition=models.Q(('done_at__isnull', True)), fields=['bulk', 'id'], name='bulk_item_open'),
        ),
        migrations.AddConstraint(
            model_name='bulkitem',
            constraint=models.UniqueConstraint(fields=('bulk', 'request'), name='bulk_item_once'),
        ),
        db.closed_once(table="approvals_bulkitem", column="done_at"),
        db.grant("approvals_savedview", rights="SELECT, INSERT, UPDATE (query, is_default, removed_at)"),
        db.grant("approvals_bulkvote", rights="SELECT, INSERT, UPDATE (finished_at)"),
        db.grant("approvals_bulkitem", rights="SELECT, INSERT, UPDATE (code, detail, done_at, tries, try_after)"),
        db.grant_also("approvals_preference", columns="zone, keys"),
    ]
