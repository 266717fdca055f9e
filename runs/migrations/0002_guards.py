"""What the application's role may never do to a run's facts, and the edges a run may take."""

from django.db import migrations

from runs import db

RUN = [
    (source, target)
    for target, sources in {
        "gathering": "queued waiting awaiting_approval executing outcome_unknown needs_person",
        "deciding": "gathering deciding authorising awaiting_approval executing outcome_unknown waiting needs_person",
        "authorising": "gathering deciding awaiting_approval executing waiting needs_person",
        "awaiting_approval": "authorising",
        "executing": "authorising awaiting_approval outcome_unknown waiting needs_person",
        "outcome_unknown": "executing",
        "waiting": "gathering deciding executing",
        "needs_person": "gathering deciding authorising awaiting_approval executing outcome_unknown",
        "completed": "deciding executing needs_person",
        "rejected": "authorising awaiting_approval",
        "failed": "executing needs_person",
        "cancelled": "queued gathering deciding authorising awaiting_approval executing outcome_unknown waiting"
        " needs_person",
    }.items()
    for source in sources.split()
]


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [
        db.edges(machine="run", table="runs_run", initial="queued", pairs=RUN),
        # a finished run is closed for good: nothing about it changes but its record's numbering
        migrations.RunSQL(
            [
                "CREATE FUNCTION runs_finished_stays() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
                " IF OLD.finished_at IS NOT NULL AND (NEW.finished_at IS DISTINCT FROM OLD.finished_at"
                "   OR NEW.state <> OLD.state OR NEW.wake_at IS NOT NULL OR NEW.lease_until IS NOT NULL) THEN"
                "  RAISE EXCEPTION 'a finished run stays finished' USING ERRCODE = 'restrict_violation';"
                " END IF;"
                " IF NEW.lease_token < OLD.lease_token OR NEW.event_seq < OLD.event_seq THEN"
                "  RAISE EXCEPTION 'tokens and numbers only grow' USING ERRCODE = 'restrict_violation'; END IF;"
                " RETURN NEW; END $fn$",
                "CREATE TRIGGER runs_finished_stays BEFORE UPDATE ON runs_run FOR EACH ROW"
                " EXECUTE FUNCTION runs_finished_stays()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant("runs_stateedge", rights="SELECT"),
        db.grant("runs_event", "runs_evidence", "runs_modelcall", rights="SELECT, INSERT"),
        db.grant("runs_proposal", rights="SELECT, INSERT, UPDATE (id)"),
        db.grant("runs_principal", rights="SELECT, INSERT, UPDATE (label)"),
        db.grant("runs_apitoken", rights="SELECT, INSERT, UPDATE (label, revoked_at)"),
        db.grant("runs_signal", rights="SELECT, INSERT, UPDATE (applied_at, result)"),
        db.grant("runs_externalevent", rights="SELECT, INSERT, UPDATE (times_received, processed_at, result)"),
        db.grant("runs_streamhead", rights="SELECT, INSERT, UPDATE (seq, hash)"),
        db.grant(
            "runs_run",
            rights="SELECT, INSERT, UPDATE (state, state_since, finished_at, outcome, title, customer, wake_at, waits_for,"
            " resume_to, facts_wanted_at, woken, lease_token, lease_until, lease_holder, claims_in_row, event_seq, event_hash,"
            " paused_at, cancel_requested_at, cancel_reason, cancelled_by_id, person_code, person_reason, owner_id,"
            " refusals, tries_in_row, times_out_of_date)",
        ),
    ]
