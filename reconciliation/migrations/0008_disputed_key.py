"""What our record calls failed, and the other side shows, holds its business key until a person has judged it."""

from django.db import migrations, models



HOLDS = ("authorised", "sending", "unknown", "accepted", "succeeded", "compensated")

# Only these triggers change `key_held`. Where a successor has the key by then it keeps it, and the case says so.
HOLD = """
CREATE FUNCTION reconciliation_hold_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
AS $fn$ BEGIN
  BEGIN
    UPDATE reconciliation_operation SET key_held = true
      WHERE id = NEW.operation_id AND state IN ('failed', 'abandoned') AND NOT key_held;
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  RETURN NULL;
END $fn$
"""
FREE = """
CREATE FUNCTION reconciliation_free_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
AS $fn$ BEGIN
  UPDATE reconciliation_operation o SET key_held = false
    WHERE o.id = NEW.operation_id AND o.key_held
      AND NOT EXISTS (SELECT FROM reconciliation_case c WHERE c.operation_id = o.id AND c.state <> 'resolved');
  RETURN NULL;
END $fn$
"""


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0007_statements")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="key_held",
            field=models.BooleanField(
                db_default=False, default=False, help_text="failed, in dispute: its business key stays taken"
            ),
        ),
        migrations.RemoveConstraint(model_name="operation", name="operation_business_key_once"),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", HOLDS), ("key_held", True), _connector="OR"),
                fields=("business_key",),
                name="operation_business_key_once",
            ),
        ),
        migrations.RunSQL(
            [
                HOLD,
                FREE,
                "CREATE TRIGGER reconciliation_hold_key AFTER INSERT ON reconciliation_case FOR EACH ROW"
                " EXECUTE FUNCTION reconciliation_hold_key()",
                "CREATE TRIGGER reconciliation_free_key AFTER UPDATE OF state ON reconciliation_case FOR EACH ROW"
                " WHEN (NEW.state = 'resolved') EXECUTE FUNCTION reconciliation_free_key()",
            ],
            migrations.RunSQL.noop,
        ),
    ]
