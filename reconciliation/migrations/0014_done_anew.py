"""What was undone keeps its business key until a person allows that the same is done anew."""

from django.db import migrations, models

from runs import db

STANDS = ("authorised", "sending", "unknown", "accepted", "succeeded")

# as before, and what was undone and given up, once it is in doubt again
HOLD = """
CREATE OR REPLACE FUNCTION reconciliation_hold_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public
AS $fn$ BEGIN
  BEGIN
    UPDATE reconciliation_operation SET key_held = true
      WHERE id = NEW.operation_id AND NOT key_held AND (state IN ('failed', 'abandoned') OR anew_allowed);
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  RETURN NULL;
END $fn$
"""
GUARD = """
CREATE FUNCTION reconciliation_anew() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN
  IF OLD.anew_allowed OR NEW.state <> 'compensated' OR OLD.state <> 'compensated' THEN
    RAISE EXCEPTION 'only what was undone is done anew, and that is allowed once'
      USING ERRCODE = 'restrict_violation'; END IF;
  RETURN NEW; END $fn$
"""


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0013_delayed_reversals")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="anew_allowed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="undone, and a person allowed that the same is done anew",
            ),
        ),
        migrations.RemoveConstraint(model_name="operation", name="operation_business_key_once"),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("state__in", STANDS),
                    models.Q(("anew_allowed", False), ("state", "compensated")),
                    ("key_held", True),
                    _connector="OR",
                ),
                fields=("business_key",),
                name="operation_business_key_once",
            ),
        ),
        migrations.RunSQL(
            [
                HOLD,
                GUARD,
                "CREATE TRIGGER reconciliation_anew BEFORE UPDATE OF anew_allowed ON reconciliation_operation"
                " FOR EACH ROW WHEN (NEW.anew_allowed IS DISTINCT FROM OLD.anew_allowed)"
                " EXECUTE FUNCTION reconciliation_anew()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant_also("reconciliation_operation", columns="anew_allowed"),
    ]
