"""Every stage has its own distinct people before there is a yes, whatever the application believes."""

import django.db.models.deletion
from django.db import migrations, models

from runs import db

# what was asked before there were stages was asked of one group
ONE_STAGE = """
INSERT INTO approvals_stage (id, request_id, position, name, groups, conditions, quorum, reject_at, in_turn, added_why,
    also, opened_at, met_at)
  SELECT gen_random_uuid(), r.id, 1, r."group", jsonb_build_array(r."group"), '{}', r.quorum, 1, FALSE, '', '[]',
    r.created_at, CASE WHEN r.state IN ('approved', 'spent', 'stale', 'revoked') THEN r.closed_at END
  FROM approvals_approvalrequest r"""

VOTES_THERE = """
UPDATE approvals_vote v SET stage_id = s.id FROM approvals_stage s WHERE s.request_id = v.request_id"""

YES = """
CREATE FUNCTION approvals_yes_in(stage uuid) RETURNS bigint LANGUAGE sql STABLE AS $fn$
  SELECT count(DISTINCT COALESCE(v.instead_of_id, v.principal_id)) FROM approvals_vote v
    WHERE v.stage_id = stage AND v.choice = 'approve' $fn$"""

STAGE = """
CREATE FUNCTION approvals_stage_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.opened_at IS NOT NULL AND NEW.opened_at IS DISTINCT FROM OLD.opened_at THEN
    RAISE EXCEPTION 'a stage is opened once' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.in_turn AND NEW.opened_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.opened_at IS NULL) AND EXISTS (
    SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND s.position < NEW.position
      AND approvals_yes_in(s.id) < s.quorum
  ) THEN
    RAISE EXCEPTION 'this stage waits for those before it' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.met_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.met_at IS NULL) AND approvals_yes_in(NEW.id) < NEW.quorum THEN
    RAISE EXCEPTION 'this stage has not got its people' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT NEW.also <@ (SELECT COALESCE(jsonb_agg(p."group"), '[]') FROM approvals_prompt p
      WHERE p.request_id = NEW.request_id AND p.kind = 'escalate') THEN
    RAISE EXCEPTION 'the rule names no such escalation' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""

# one person, one answer in one stage: whoever stood in for somebody, and that somebody, are one
VOTE = """
CREATE FUNCTION approvals_vote_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM approvals_stage s WHERE s.id = NEW.stage_id AND s.request_id = NEW.request_id
      AND s.opened_at IS NOT NULL AND s.met_at IS NULL) THEN
    RAISE EXCEPTION 'this stage is not asked' USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM approvals_vote v WHERE v.request_id = NEW.request_id
      AND (v.instead_of_id = NEW.principal_id OR v.principal_id = NEW.instead_of_id)) THEN
    RAISE EXCEPTION 'a stand-in and whom they stand in for are one' USING ERRCODE = 'unique_violation';
  END IF;
  RETURN NEW;
END $fn$"""

DECISION = """
CREATE FUNCTION approvals_decision_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.kind <> 'people' THEN
    RETURN NEW;
  END IF;
  IF NEW.approved AND (
    NOT EXISTS (SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id)
    OR EXISTS (SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND approvals_yes_in(s.id) < s.quorum)
  ) THEN
    RAISE EXCEPTION 'a stage has not got its people' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT NEW.approved AND NOT EXISTS (
    SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND s.reject_at <=
      (SELECT count(*) FROM approvals_vote v WHERE v.stage_id = s.id AND v.choice = 'reject')
  ) THEN
    RAISE EXCEPTION 'not enough people have said no' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""


def _trigger(table: str, function: str, on: str) -> str:
    return f"CREATE TRIGGER {function} BEFORE {on} ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()"


class Migration(migrations.Migration):

    dependencies = [("approvals", "0011_chains")]

    operations = [
        migrations.RunSQL(
            [ONE_STAGE, VOTES_THERE, "SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED"],
            migrations.RunSQL.noop,
        ),
        migrations.AlterField(
            model_name="vote",
            name="stage",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="votes", to="approvals.stage"
            ),
        ),
        migrations.RunSQL(
            [
                YES,
                STAGE,
                VOTE,
                DECISION,
                _trigger("approvals_stage", "approvals_stage_guard", "INSERT OR UPDATE"),
                _trigger("approvals_vote", "approvals_vote_guard", "INSERT"),
                _trigger("approvals_decision", "approvals_decision_guard", "INSERT"),
            ],
            migrations.RunSQL.noop,
        ),
        db.closed_once(table="approvals_absence", column="ended_at"),
        db.closed_once(table="approvals_prompt", column="ended_at"),
        db.grant("approvals_stage", rights="SELECT, INSERT, UPDATE (also, handed_user_id, handed_group_id, opened_at, met_at)"),
        db.grant("approvals_prompt", rights="SELECT, INSERT, UPDATE (due_at, ended_at, result)"),
        db.grant("approvals_absence", rights="SELECT, INSERT, UPDATE (ended_at, ended_by_id)"),
        db.grant("approvals_remit", rights="SELECT, INSERT, UPDATE (team, region, limits)"),
    ]
