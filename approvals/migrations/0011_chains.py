"""Stages of requests, who answers for whom, and what is set about people who answer."""

import django.db.models.deletion
import runs.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0010_same_action'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('runs', '0006_batch_tries'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='approvalrequest',
            options={'permissions': [('vote', 'Can approve and reject'), ('reassign', 'Can hand requests on and add approvers')]},
        ),
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
            name='Remit',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='remit', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('team', models.CharField(blank=True, max_length=60)),
                ('region', models.CharField(blank=True, max_length=60)),
                ('limits', models.JSONField(default=dict, help_text='currency to minor units')),
            ],
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
        migrations.AddField(
            model_name='approvalrequest',
            name='clock',
            field=models.CharField(db_default='elapsed', default='elapsed', help_text='elapsed or working time', max_length=8),
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='when_late',
            field=models.CharField(db_default='expire', default='expire', help_text='expire or reject', max_length=8),
        ),
        migrations.AddField(
            model_name='vote',
            name='instead_of',
            field=models.ForeignKey(blank=True, help_text='who was away', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal'),
        ),
        migrations.AlterField(
            model_name='approvalrequest',
            name='group',
            field=models.CharField(help_text='the first that is asked; who may vote is in the stages', max_length=150),
        ),
        migrations.AlterField(
            model_name='approvalrequest',
            name='quorum',
            field=models.PositiveSmallIntegerField(default=1, help_text='how many people in all stages together'),
        ),
        migrations.AddConstraint(
            model_name='approvalrequest',
            constraint=models.CheckConstraint(condition=models.Q(('clock__in', ['elapsed', 'working'])), name='request_clock_known'),
        ),
        migrations.AddConstraint(
            model_name='approvalrequest',
            constraint=models.CheckConstraint(condition=models.Q(('when_late__in', ['expire', 'reject'])), name='request_late_is_no'),
        ),
        migrations.AddField(
            model_name='vote',
            name='stage',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='votes', to='approvals.stage'),
        ),
        migrations.AddConstraint(
            model_name='vote',
            constraint=models.UniqueConstraint(condition=models.Q(('instead_of__isnull', False)), fields=('request', 'instead_of'), name='vote_once_instead'),
        ),
        migrations.AddConstraint(
            model_name='vote',
            constraint=models.CheckConstraint(condition=models.Q(('instead_of__isnull', True), models.Q(('principal', models.F('instead_of')), _negated=True), _connector='OR'), name='vote_not_instead_of_self'),
        ),
    ]
