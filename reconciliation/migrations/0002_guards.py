"""An operation keeps its identity and effect; an attempt is closed once; what was observed stays."""

from django.db import migrations

from runs import db

OPERATION = [
    ("authorised", "sending"),
    ("unknown", "sending"),
    ("sending", "authorised"),
    ("sending", "succeeded"),
    ("accepted", "succeeded"),
    ("unknown", "succeeded"),
    ("sending", "failed"),
    ("accepted", "failed"),
    ("unknown", "failed"),
    ("sending", "accepted"),
    ("sending", "unknown"),
    ("authorised", "abandoned"),
]
CASE = [("open", "claimed"), ("claimed", "open"), ("open", "resolved"), ("claimed", "resolved")]


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0001_initial"), ("runs", "0002_guards"), ("approvals", "0002_guards")]

    operations = [
        db.edges(machine="operation", table="reconciliation_operation", initial="authorised", pairs=OPERATION),
        db.edges(machine="reconciliation_case", table="reconciliation_case", initial="open", pairs=CASE),
        # nobody ends a run, or takes it away from settling, while something it sent may or may not have happened
        migrations.RunSQL(
            [
                "CREATE FUNCTION reconciliation_settle_first() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
                " IF NEW.state <> OLD.state"
                "   AND NEW.state IN ('completed', 'rejected', 'cancelled', 'failed', 'needs_person', 'gathering')"
                "   AND EXISTS (SELECT FROM reconciliation_operation o WHERE o.run_id = NEW.id"
                "     AND o.state IN ('sending', 'unknown', 'accepted')) THEN"
                "  RAISE EXCEPTION 'an operation of this run is not settled' USING ERRCODE = 'restrict_violation';"
                " END IF; RETURN NEW; END $fn$",
                "CREATE TRIGGER reconciliation_settle_first BEFORE UPDATE OF state ON runs_run FOR EACH ROW"
                " EXECUTE FUNCTION reconciliation_settle_first()",
            ],
            migrations.RunSQL.noop,
        ),
        db.closed_once(table="reconciliation_attempt", column="closed_at"),
        db.grant("reconciliation_observation", rights="SELECT, INSERT"),
        db.grant("reconciliation_attempt", rights="SELECT, INSERT, UPDATE (closed_at, result, detail, answer)"),
        db.grant("reconciliation_workerprocess", rights="SELECT, INSERT, UPDATE (ended_at)"),
        db.grant("reconciliation_reservation", rights="SELECT, INSERT, UPDATE (state, amount_minor)"),
        db.grant(
            "reconciliation_operation",
            rights="SELECT, INSERT, UPDATE (state, epoch, attempts_made, next_attempt_at, unknown_since, probes_made,"
            " next_probe_at, external_reference, actual, settled_by, failure, failure_code, settled_at)",
        ),
        db.grant(
            "reconciliation_case",
            rights="SELECT, INSERT, UPDATE (state, claimed_by_id, claimed_at, verdict, evidence, resolved_by_id,"
            " resolved_at, why)",
        ),
    ]
