import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.ids

TABLES = [
    migrations.CreateModel(
        name='Announcement',
        fields=[
            ('event', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='runs.event')),
            ('done_at', models.DateTimeField(blank=True, help_text='when everybody concerned had a row of their own', null=True)),
        ],
        options={
            'indexes': [
                models.Index(condition=models.Q(('done_at__isnull', True)), fields=['event'], name='announcement_to_spread'),
            ],
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
            ('kind', models.CharField(choices=[('asked', 'You are asked'), ('outcome', 'What became of it'), ('talk', 'Somebody wrote')], max_length=8)),
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
]
