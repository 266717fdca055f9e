"""Who is told of requests: the outbox that the record fills, notices by mail, and deliveries to other systems."""

import django.db.models.deletion
import runs.ids
from django.conf import settings
from django.db import migrations, models

from runs import db

# the record itself fills the outbox: in the same transaction as the line, whichever code wrote it
ANNOUNCE = """
CREATE FUNCTION approvals_announce() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  INSERT INTO approvals_announcement (event_id) VALUES (NEW.id);
  RETURN NULL;
END $fn$"""


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0005_freezes'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('runs', '0005_operator'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Announcement',
            fields=[
                ('event', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='runs.event')),
                ('done_at', models.DateTimeField(blank=True, help_text='when everybody concerned had a row of their own', null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('done_at__isnull', True)), fields=['event'], name='announcement_to_spread')],
            },
        ),
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('url', models.CharField(max_length=500)),
                ('nonce', models.CharField(max_length=64)),
                ('added_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, help_text='nothing is sent there any more', null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='in a row')),
                ('not_before', models.DateTimeField(blank=True, help_text='nothing is sent there before', null=True)),
                ('added_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('url',), name='endpoint_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('body', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(help_text='when it is tried next')),
                ('tries', models.PositiveIntegerField(default=0, help_text='grows with every claim')),
                ('lease_until', models.DateTimeField(blank=True, help_text='somebody is sending it until then', null=True)),
                ('status', models.PositiveSmallIntegerField(blank=True, help_text='of the last answer over HTTP', null=True)),
                ('problem', models.CharField(blank=True, help_text='what went wrong last', max_length=300)),
                ('result', models.CharField(blank=True, choices=[('delivered', 'Delivered'), ('ended', 'The endpoint was ended'), ('given_up', 'Given up')], max_length=12)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.event')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='approvals.endpoint')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'indexes': [
                    models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['due_at'], name='delivery_due'),
                    models.Index(fields=['-created_at'], name='delivery_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('event', 'endpoint'), name='delivery_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('result', '')), models.Q(models.Q(('result', ''), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='delivery_ended_iff_result'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, help_text="the mail's Message-ID as well", primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('asked', 'You are asked'), ('outcome', 'What became of it')], max_length=8)),
                ('digest', models.BooleanField(default=False, help_text="goes out with the person's others in one mail")),
                ('created_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(help_text='when it is tried next')),
                ('tries', models.PositiveIntegerField(default=0, help_text="grows with every claim, so a late sender's word is known")),
                ('lease_until', models.DateTimeField(blank=True, help_text='somebody is sending it until then', null=True)),
                ('problem', models.CharField(blank=True, help_text='what went wrong last', max_length=300)),
                ('result', models.CharField(blank=True, choices=[('sent', 'Sent'), ('not_needed', 'Not needed any more'), ('not_wanted', 'Mail not wanted'), ('no_address', 'No address'), ('given_up', 'Given up')], max_length=12)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.event')),
                ('recipient', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notices', to='approvals.approvalrequest')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['due_at'], name='notice_due'),
                    models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['recipient'], name='notice_of_person'),
                    models.Index(fields=['-ended_at'], name='notice_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('event', 'recipient'), name='notice_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('result', '')), models.Q(models.Q(('result', ''), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='notice_ended_iff_result'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Preference',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('mail', models.CharField(choices=[('at_once', 'At once, one mail for each request'), ('digest', 'Together, in one mail every few hours'), ('none', 'No mail')], default='at_once', max_length=8)),
                ('digest_hours', models.PositiveSmallIntegerField(default=4)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('digest_hours__gte', 1), ('digest_hours__lte', 24)), name='preference_hours_in_a_day')],
            },
        ),
        migrations.RunSQL(
            [
                ANNOUNCE,
                "CREATE TRIGGER approvals_announce AFTER INSERT ON runs_event FOR EACH ROW"
                " WHEN (NEW.kind LIKE 'request.%') EXECUTE FUNCTION approvals_announce()",
            ],
            migrations.RunSQL.noop,
        ),
        db.closed_once(table="approvals_announcement", column="done_at"),
        db.closed_once(table="approvals_notice", column="ended_at"),
        db.closed_once(table="approvals_delivery", column="ended_at"),
        db.grant("approvals_announcement", rights="SELECT, INSERT, UPDATE (done_at)"),
        db.grant(
            "approvals_notice",
            rights="SELECT, INSERT, UPDATE (digest, due_at, tries, lease_until, problem, result, ended_at)",
        ),
        db.grant("approvals_preference", rights="SELECT, INSERT, UPDATE (mail, digest_hours)"),
        db.grant("approvals_endpoint", rights="SELECT, INSERT, UPDATE (nonce, ended_at, failures, not_before)"),
        db.grant(
            "approvals_delivery",
            rights="SELECT, INSERT, UPDATE (due_at, tries, lease_until, status, problem, result, ended_at)",
        ),
    ]
