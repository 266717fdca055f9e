"""An operation that was approved beforehand holds its share of that approval, from the moment it exists."""

from django.db import migrations

# looked at when the transaction ends: the share is reserved after the operation is made
HOLDS = """
CREATE FUNCTION reconciliation_holds_standing() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF EXISTS (SELECT FROM approvals_decision d WHERE d.id = NEW.decision_id AND d.kind = 'standing'
      AND NOT EXISTS (SELECT FROM reconciliation_reservation r WHERE r.operation_id = NEW.id
        AND (r.allowance_id || '/') LIKE 'standing/' || d.standing_id || '/%'
        AND r.amount_minor = NEW.amount_minor)) THEN
    RAISE EXCEPTION 'an operation under a standing approval uses it' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $fn$"""


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0011_reversals"), ("approvals", "0014_standing")]

    operations = [
        migrations.RunSQL(
            [
                HOLDS,
                "CREATE CONSTRAINT TRIGGER reconciliation_holds_standing AFTER INSERT ON reconciliation_operation"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconciliation_holds_standing()",
            ],
            migrations.RunSQL.noop,
        ),
    ]
