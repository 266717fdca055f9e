"""Standing approvals: given beforehand, used up under lock, revoked at once; and decisions that rest on one."""

import django.db.models.deletion
import django.db.models.expressions
import django_fsm
import runs.ids
from django.db import migrations, models

from runs import db

STANDING = [
    ("asked", "in_force"),
    ("asked", "declined"),
    ("asked", "withdrawn"),
    ("in_force", "revoked"),
]

# a decision rests on one only while that is in force, for its tool and currency, and up to its amount
COVERS = """
CREATE FUNCTION approvals_standing_covers() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM approvals_standingapproval s JOIN runs_proposal p ON p.id = NEW.proposal_id
      WHERE s.id = NEW.standing_id AND s.state = 'in_force' AND s.tool = p.tool AND s.currency = p.currency
      AND p.amount_minor <= s.each_minor AND NEW.decided_at >= s.starts_at AND NEW.decided_at < s.ends_at
      AND NEW.valid_until <= s.ends_at) THEN
    RAISE EXCEPTION 'no standing approval in force covers this' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0013_inbox'),
        ('runs', '0006_batch_tries'),
    ]

    operations = [
        migrations.CreateModel(
            name='StandingApproval',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('state', django_fsm.FSMField(choices=[('asked', 'Not in force yet'), ('in_force', 'In force'), ('declined', 'Declined'), ('withdrawn', 'Withdrawn'), ('revoked', 'Revoked')], default='asked', max_length=10)),
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
        migrations.RemoveConstraint(
            model_name='decision',
            name='decision_people_iff_request',
        ),
        migrations.AddField(
            model_name='allowance',
            name='count_limit',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='allowance',
            name='reserved_count',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='allowance',
            name='settled_count',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='decision',
            name='kind',
            field=models.CharField(choices=[('policy', 'Policy'), ('people', 'People'), ('standing', 'Standing')], max_length=8),
        ),
        migrations.AddConstraint(
            model_name='allowance',
            constraint=models.CheckConstraint(condition=models.Q(('count_limit__isnull', True), ('count_limit__gte', django.db.models.expressions.CombinedExpression(models.F('reserved_count'), '+', models.F('settled_count'))), _connector='OR'), name='allowance_within_count'),
        ),
        migrations.AddField(
            model_name='decision',
            name='standing',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='approvals.standingapproval'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'people'), ('request__isnull', False)), models.Q(models.Q(('kind', 'people'), _negated=True), ('request__isnull', True)), _connector='OR'), name='decision_people_iff_request'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'standing'), ('standing__isnull', False)), models.Q(models.Q(('kind', 'standing'), _negated=True), ('standing__isnull', True)), _connector='OR'), name='decision_standing_iff_approval'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'standing')), fields=('proposal',), name='decision_standing_once'),
        ),
        db.edges(machine="standing_approval", table="approvals_standingapproval", initial="asked", pairs=STANDING),
        migrations.RunSQL(
            [
                COVERS,
                "CREATE TRIGGER approvals_standing_covers BEFORE INSERT ON approvals_decision FOR EACH ROW"
                " WHEN (NEW.kind = 'standing') EXECUTE FUNCTION approvals_standing_covers()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant(
            "approvals_standingapproval",
            rights="SELECT, INSERT, UPDATE (state, granted_by_id, granted_at, ended_by_id, ended_at, end_reason)",
        ),
        db.grant_also("approvals_allowance", columns="reserved_count, settled_count"),
    ]
