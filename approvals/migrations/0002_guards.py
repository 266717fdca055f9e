"""What was asked, voted and decided never changes; whoever changes rights waits for whoever is using them."""

from django.db import migrations

from runs import db

REQUEST = [
    ("open", "approved"),
    ("open", "rejected"),
    ("open", "expired"),
    ("open", "superseded"),
    ("open", "withdrawn"),
    ("open", "sent_back"),
    ("approved", "spent"),
    ("approved", "stale"),
    ("approved", "expired"),
    ("approved", "revoked"),
]
DRAFT = [
    ("writing", "asked"),
    ("asked", "writing"),
    ("asked", "published"),
    ("writing", "discarded"),
    ("asked", "discarded"),
]
STANDING = [
    ("asked", "in_force"),
    ("asked", "declined"),
    ("asked", "withdrawn"),
    ("in_force", "revoked"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_initial"),
        ("runs", "0002_guards"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        db.edges(machine="request", table="approvals_approvalrequest", initial="open", pairs=REQUEST),
        db.edges(machine="policy_draft", table="approvals_policydraft", initial="writing", pairs=DRAFT),
        db.edges(machine="standing_approval", table="approvals_standingapproval", initial="asked", pairs=STANDING),
        db.script(__file__, "membership.sql"),
        db.script(__file__, "policies.sql"),
        db.script(__file__, "freezes.sql"),
        db.script(__file__, "requests.sql"),
        db.script(__file__, "votes.sql"),
        db.closed_once(table="approvals_policydraft", column="closed_at"),
        db.closed_once(table="approvals_announcement", column="done_at"),
        db.closed_once(table="approvals_notice", column="ended_at"),
        db.closed_once(table="approvals_delivery", column="ended_at"),
        db.closed_once(table="approvals_absence", column="ended_at"),
        db.closed_once(table="approvals_prompt", column="ended_at"),
        db.closed_once(table="approvals_bulkitem", column="done_at"),
        db.grant("approvals_vote", "approvals_refusal", "approvals_viewing", rights="SELECT, INSERT"),
        db.grant("approvals_remark", "approvals_tally", "approvals_draftrevision", rights="SELECT, INSERT"),
        db.grant("approvals_policytool", rights="SELECT, INSERT"),
        db.grant("approvals_decision", "approvals_policyversion", rights="SELECT, INSERT, UPDATE (id)"),
        db.grant("approvals_policy", rights="SELECT, INSERT, UPDATE (name, active_id)"),
        db.grant(
            "approvals_policydraft",
            rights="SELECT, INSERT, UPDATE (state, revision, asked_by_id, asked_at, reason, closed_by_id, closed_at)",
        ),
        db.grant(
            "approvals_standingapproval",
            rights="SELECT, INSERT, UPDATE (state, granted_by_id, granted_at, ended_by_id, ended_at, end_reason)",
        ),
        db.grant(
            "approvals_allowance",
            rights="SELECT, INSERT, UPDATE (label, limit_minor, reserved_minor, settled_minor, overrun_minor,"
            " reserved_count, settled_count)",
        ),
        db.grant(
            "approvals_freeze",
            rights="SELECT, INSERT, UPDATE (lifted_at, lifted_by_id, lift_reason, thaw_after, thawed_at)",
        ),
        db.grant(
            "approvals_approvalrequest",
            rights="SELECT, INSERT, UPDATE (state, respond_by, stopped_for, closed_at, close_reason, closed_by_id)",
        ),
        db.grant(
            "approvals_stage",
            rights="SELECT, INSERT, UPDATE (also, handed_user_id, handed_group_id, opened_at, met_at)",
        ),
        db.grant("approvals_prompt", rights="SELECT, INSERT, UPDATE (due_at, ended_at, result)"),
        db.grant("approvals_claim", rights="SELECT, INSERT, UPDATE (principal_id, at, until)"),
        db.grant("approvals_absence", rights="SELECT, INSERT, UPDATE (ended_at, ended_by_id)"),
        db.grant("approvals_remit", rights="SELECT, INSERT, UPDATE (team, region, limits)"),
        db.grant("approvals_preference", rights="SELECT, INSERT, UPDATE (mail, digest_hours, zone, keys)"),
        db.grant("approvals_savedview", rights="SELECT, INSERT, UPDATE (query, is_default, removed_at)"),
        db.grant("approvals_bulkvote", rights="SELECT, INSERT, UPDATE (finished_at)"),
        db.grant("approvals_bulkitem", rights="SELECT, INSERT, UPDATE (code, detail, done_at, tries, try_after)"),
        db.grant("approvals_announcement", rights="SELECT, INSERT, UPDATE (done_at)"),
        db.grant(
            "approvals_notice",
            rights="SELECT, INSERT, UPDATE (digest, due_at, tries, lease_until, problem, result, ended_at)",
        ),
        db.grant("approvals_endpoint", rights="SELECT, INSERT, UPDATE (nonce, ended_at, failures, not_before)"),
        db.grant(
            "approvals_delivery",
            rights="SELECT, INSERT, UPDATE (due_at, tries, lease_until, status, problem, result, ended_at)",
        ),
    ]
