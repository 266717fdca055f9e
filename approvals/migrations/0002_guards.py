"""What was asked, voted and decided never changes; whoever changes rights waits for whoever is using them."""

from django.db import migrations

from runs import db

REQUEST = [
    ("open", "approved"),
    ("open", "rejected"),
    ("open", "expired"),
    ("open", "superseded"),
    ("open", "withdrawn"),
    ("approved", "spent"),
    ("approved", "stale"),
    ("approved", "expired"),
    ("approved", "revoked"),
]

# sending and voting read the voter's user row FOR SHARE; a change of membership must wait for them and they for it
MEMBERSHIP = """
CREATE FUNCTION approvals_membership_lock() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF TG_TABLE_NAME = 'auth_group_permissions' THEN
    PERFORM 1 FROM auth_user u JOIN auth_user_groups g ON g.user_id = u.id
      WHERE g.group_id = COALESCE(NEW.group_id, OLD.group_id) ORDER BY u.id FOR UPDATE OF u;
  ELSE
    PERFORM 1 FROM auth_user WHERE id = COALESCE(NEW.user_id, OLD.user_id) FOR UPDATE;
  END IF;
  RETURN COALESCE(NEW, OLD);
END $fn$"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_initial"),
        ("runs", "0002_guards"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        db.edges(machine="request", table="approvals_approvalrequest", initial="open", pairs=REQUEST),
        migrations.RunSQL(
            [MEMBERSHIP]
            + [
                f"CREATE TRIGGER {table}_lock BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW"
                " EXECUTE FUNCTION approvals_membership_lock()"
                for table in ("auth_user_groups", "auth_user_user_permissions", "auth_group_permissions")
            ],
            migrations.RunSQL.noop,
        ),
        db.grant("approvals_vote", "approvals_refusal", "approvals_viewing", rights="SELECT, INSERT"),
        db.grant("approvals_policytool", rights="SELECT, INSERT"),
        db.grant("approvals_decision", "approvals_policyversion", rights="SELECT, INSERT, UPDATE (id)"),
        db.grant("approvals_policy", rights="SELECT, INSERT, UPDATE (name, active_id)"),
        db.grant(
            "approvals_allowance",
            rights="SELECT, INSERT, UPDATE (label, limit_minor, reserved_minor, settled_minor, overrun_minor)",
        ),
        db.grant(
            "approvals_approvalrequest", rights="SELECT, INSERT, UPDATE (state, closed_at, close_reason)"
        ),
    ]
