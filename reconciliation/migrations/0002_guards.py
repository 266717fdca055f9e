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
    ("succeeded", "failed"),
    ("failed", "succeeded"),
    ("succeeded", "compensated"),
]
CASE = [("open", "claimed"), ("claimed", "open"), ("open", "resolved"), ("claimed", "resolved")]


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0001_initial"), ("runs", "0002_guards"), ("approvals", "0002_guards")]

    operations = [
        db.edges(machine="operation", table="reconciliation_operation", initial="authorised", pairs=OPERATION),
        db.edges(machine="reconciliation_case", table="reconciliation_case", initial="open", pairs=CASE),
        db.script(__file__, "operations.sql"),
        db.script(__file__, "keys.sql"),
        db.script(__file__, "reversals.sql"),
        db.script(__file__, "statements.sql"),
        db.closed_once(table="reconciliation_attempt", column="closed_at"),
        db.closed_once(table="reconciliation_reversal", column="ended_at"),
        # what was read stays as it was read; each line, statement and note is closed once
        db.closed_once(table="reconciliation_statementline", column="judged_at"),
        db.closed_once(table="reconciliation_statement", column="finished_at"),
        db.closed_once(table="reconciliation_difference", column="noted_at"),
        db.grant("reconciliation_observation", "reconciliation_correction", rights="SELECT, INSERT"),
        db.grant("reconciliation_proposedverdict", "reconciliation_resourcehold", rights="SELECT, INSERT"),
        db.grant("reconciliation_statementfile", "reconciliation_statementours", rights="SELECT, INSERT"),
        db.grant("reconciliation_theirname", rights="SELECT, INSERT, UPDATE (given_up)"),
        db.grant("reconciliation_attempt", rights="SELECT, INSERT, UPDATE (closed_at, result, detail, answer)"),
        db.grant("reconciliation_workerprocess", rights="SELECT, INSERT, UPDATE (ended_at)"),
        db.grant("reconciliation_reservation", rights="SELECT, INSERT, UPDATE (state, amount_minor)"),
        db.grant(
            "reconciliation_operation",
            rights="SELECT, INSERT, UPDATE (state, epoch, attempts_made, next_attempt_at, unknown_since, probes_made,"
            " next_probe_at, external_reference, actual, settled_by, failure, failure_code, settled_at, turn_at,"
            " look_wanted_at, corrected, corrected_at, other_reversed, anew_allowed)",
        ),
        db.grant(
            "reconciliation_case",
            rights="SELECT, INSERT, UPDATE (state, claimed_by_id, claimed_at, verdict, evidence, resolved_by_id,"
            " resolved_at, why, confirmed_by_id, doubts)",
        ),
        db.grant("reconciliation_casenotice", rights="SELECT, INSERT, UPDATE (due_at, tries, result, ended_at)"),
        db.grant(
            "reconciliation_reversal",
            rights="SELECT, INSERT, UPDATE (run_id, due_at, ended_at, result, what, tries, problem)",
        ),
        db.grant(
            "reconciliation_dependency",
            rights="SELECT, INSERT, UPDATE (failures, last_failure, last_failure_at, open_since, ask_at, trial_until,"
            " not_before, free_at, line_at)",
        ),
        db.grant(
            "reconciliation_statement",
            rights="SELECT, INSERT, UPDATE (since, until, columns, due_at, cursor, pages, failures, problem, read_at,"
            " matched_at, finished_at, stopped_at, stopped_by_id, stopped_because)",
        ),
        db.grant(
            "reconciliation_statementline", rights="SELECT, INSERT, UPDATE (result, tells, operation_id, judged_at)"
        ),
        db.grant("reconciliation_difference", rights="SELECT, INSERT, UPDATE (evidence, noted_by_id, noted_at)"),
    ]
