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
        db.script(__file__, "guards.sql"),
        db.edges(machine="run", table="runs_run", initial="queued", pairs=RUN),
        db.closed_once(table="runs_batchitem", column="done_at"),
        db.closed_once(table="runs_batch", column="finished_at"),
        db.grant("runs_stateedge", rights="SELECT"),
        db.grant("runs_event", "runs_evidence", "runs_modelcall", rights="SELECT, INSERT"),
        db.grant("runs_proposal", rights="SELECT, INSERT, UPDATE (id)"),
        db.grant("runs_principal", rights="SELECT, INSERT, UPDATE (label)"),
        db.grant("runs_apitoken", rights="SELECT, INSERT, UPDATE (label, revoked_at)"),
        db.grant("runs_signal", rights="SELECT, INSERT, UPDATE (applied_at, result)"),
        db.grant("runs_wait", rights="SELECT, INSERT, UPDATE (other_id, ended_at, result, content)"),
        db.grant("runs_externalevent", rights="SELECT, INSERT, UPDATE (times_received, processed_at, result)"),
        db.grant("runs_streamhead", rights="SELECT, INSERT, UPDATE (seq, hash)"),
        db.grant("runs_batch", rights="SELECT, INSERT, UPDATE (finished_at)"),
        db.grant("runs_batchitem", rights="SELECT, INSERT, UPDATE (code, detail, done_at, tries, try_after)"),
        db.grant(
            "runs_recurring", rights="SELECT, INSERT, UPDATE (every_seconds, started_at, finished_at, result, failed)"
        ),
        db.grant(
            "runs_run",
            rights="SELECT, INSERT, UPDATE (state, state_since, finished_at, outcome, title, customer, wake_at, waits_for,"
            " waits_on, resume_to, facts_wanted_at, woken, lease_token, lease_until, lease_holder, claims_in_row,"
            " event_seq, event_hash, paused_at, frozen_by, cancel_requested_at, cancel_reason, cancelled_by_id,"
            " person_code, person_reason, owner_id, refusals, tries_in_row, times_out_of_date)",
        ),
    ]
