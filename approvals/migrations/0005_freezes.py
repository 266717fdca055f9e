"""Freezes: what is held, and the one lock between freezing and sending."""


import datetime
import django.db.models.deletion
import runs.ids
from django.db import migrations, models

from runs import db

# a sender's look and a freezer's act meet at one advisory lock, which is given in the order of asking: many senders
# one after the other never keep a freeze waiting. Each statement of the function sees what is committed once the lock
# is held.
IN_FORCE = """
CREATE FUNCTION approvals_freezes_in_force() RETURNS SETOF text LANGUAGE plpgsql VOLATILE AS $fn$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7305511224);
  RETURN QUERY SELECT scope::text FROM approvals_freeze WHERE lifted_at IS NULL;
END $fn$"""
STAYS = """
CREATE FUNCTION approvals_freeze_stays() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF OLD.lifted_at IS NOT NULL AND (NEW.lifted_at, NEW.lifted_by_id, NEW.lift_reason)
      IS DISTINCT FROM (OLD.lifted_at, OLD.lifted_by_id, OLD.lift_reason) THEN
    RAISE EXCEPTION 'a lifted freeze stays lifted' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""
# what was asked stays as it was asked; only its clock may have been stopped, while it was open. The tables' owner, who
# may do anything, is not held by this
CLOCK = """
CREATE FUNCTION approvals_deadline_only_later() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.respond_by <> OLD.respond_by
      AND NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')
      AND (OLD.state <> 'open' OR NEW.respond_by < OLD.respond_by
      OR NEW.respond_by > NEW.valid_until OR NEW.respond_by - OLD.respond_by <> NEW.stopped_for - OLD.stopped_for) THEN
    RAISE EXCEPTION 'a deadline only moves on, by the time it was stopped' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0004_policy_drafts_guards'),
        ('runs', '0005_operator'),
    ]

    operations = [
        migrations.AddField(
            model_name='approvalrequest',
            name='stopped_for',
            field=models.DurationField(db_default=datetime.timedelta(0), default=datetime.timedelta, help_text='how much later than first asked `respond_by` is: freezes stop that clock'),
        ),
        migrations.CreateModel(
            name='Freeze',
            fields=[
                ('id', models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('scope', models.CharField(help_text='all, tool:<name> or workflow:<name>', max_length=120)),
                ('reason', models.TextField()),
                ('since', models.DateTimeField()),
                ('lifted_at', models.DateTimeField(blank=True, null=True)),
                ('lift_reason', models.TextField(blank=True)),
                ('thaw_after', models.UUIDField(blank=True, help_text='the last request whose deadline was looked at', null=True)),
                ('thawed_at', models.DateTimeField(blank=True, null=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
                ('lifted_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal')),
            ],
            options={
                'permissions': [('freeze', 'Can freeze and lift freezes')],
                'indexes': [models.Index(condition=models.Q(('lifted_at__isnull', False), ('thawed_at__isnull', True)), fields=['lifted_at'], name='freeze_to_thaw'), models.Index(fields=['-since'], name='freeze_newest')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('lifted_at__isnull', True)), fields=('scope',), name='freeze_one_a_scope'), models.CheckConstraint(condition=models.Q(models.Q(('lifted_at__isnull', True), ('lifted_by__isnull', True), ('thawed_at__isnull', True)), models.Q(('lifted_at__isnull', False), ('lifted_by__isnull', False)), _connector='OR'), name='freeze_lifted_by_somebody')],
            },
        ),
        migrations.RunSQL(
            [
                IN_FORCE,
                STAYS,
                "CREATE TRIGGER approvals_freeze_stays BEFORE UPDATE ON approvals_freeze FOR EACH ROW"
                " EXECUTE FUNCTION approvals_freeze_stays()",
                CLOCK,
                "CREATE TRIGGER approvals_deadline_only_later BEFORE UPDATE OF respond_by ON approvals_approvalrequest"
                " FOR EACH ROW EXECUTE FUNCTION approvals_deadline_only_later()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant(
            "approvals_freeze",
            rights="SELECT, INSERT, UPDATE (lifted_at, lifted_by_id, lift_reason, thaw_after, thawed_at)",
        ),
        db.grant_also("approvals_approvalrequest", columns="respond_by, stopped_for"),
    ]
