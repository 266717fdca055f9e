"""What the application's own database role cannot do, read from the catalogue and tried out."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import ProgrammingError, connection, transaction

ROLE = "agentops_app"
OURS = "^(runs|approvals|reconciliation)_"

APPEND_ONLY = {
    "runs_event",
    "runs_evidence",
    "runs_modelcall",
    "runs_stateedge",
    "approvals_vote",
    "approvals_refusal",
    "approvals_viewing",
    "approvals_remark",
    "approvals_policytool",
    "approvals_draftrevision",
    "approvals_tally",
    "reconciliation_observation",
    "reconciliation_resourcehold",
    "reconciliation_correction",
    "reconciliation_proposedverdict",
    "reconciliation_statementfile",
    "reconciliation_statementours",
}
# what is fixed when the row is made; a key that may be "updated" serves row locks alone
FROZEN = {
    "runs_proposal": "run_id number step proposer_id model_call_id tool contract_version effect action_digest identity"
    " business_key amount_minor currency reading rests_on workings rationale created_at predecessor_id",
    "runs_run": "id workflow workflow_version start_key input input_digest subject capabilities terms initiator_id"
    " run_as_id agent_id created_at",
    "runs_principal": "id kind key user_id",
    "runs_apitoken": "id principal_id digest created_at may_operate",
    "runs_externalevent": "source event_id kind payload received_at",
    "approvals_decision": "kind approved proposal_id request_id standing_id policy_version_id rules votes"
    " binding_digest decided_at valid_until",
    "approvals_policyversion": "policy_id number rules digest note published_by_id published_at draft_id",
    "approvals_policydraft": "id policy_id based_on_id created_at",
    "approvals_policy": "id slug",
    "approvals_allowance": "key currency count_limit",
    "approvals_standingapproval": "id tool group only currency each_minor total_minor count period starts_at ends_at"
    " reason policy_version_id one_is_enough asked_by_id asked_at",
    "approvals_approvalrequest": "id run_id proposal_id supersedes_id changes ask action_digest binding_digest page"
    " page_digest policy_version_id rules group quorum confirm clock when_late created_at valid_until",
    "approvals_stage": "id request_id position name groups conditions quorum reject_at in_turn person_id added_by_id"
    " added_why",
    "approvals_prompt": "id request_id kind group asked_for",
    "approvals_absence": "id person_id stand_in_id begins ends note made_by_id made_at",
    "approvals_remit": "user_id",
    "approvals_claim": "request_id",
    "approvals_freeze": "id scope by_id reason since",
    "approvals_announcement": "event_id",
    "approvals_notice": "id event_id request_id recipient_id kind created_at",
    "approvals_preference": "user_id",
    "approvals_endpoint": "id url added_by_id added_at",
    "approvals_delivery": "id event_id endpoint_id body created_at",
    "runs_batch": "id act reason chosen principal_id total created_at",
    "runs_batchitem": "id batch_id run_id",
    "runs_recurring": "name",
    "approvals_savedview": "id user_id name created_at",
    "approvals_bulkvote": "id principal_id choice comment authenticated_by total created_at",
    "approvals_bulkitem": "id bulk_id request_id page_digest",
    "reconciliation_operation": "id run_id proposal_id decision_id tool contract_version system identity business_key"
    " effect amount_minor currency created_at reverses_id reverses_reference",
    "reconciliation_reversal": "id operation_id reference effect tool origin case_id after_id proposed_by_id reason"
    " created_at",
    "reconciliation_attempt": "id operation_id number epoch wire_key request sender_id opened_at send_before"
    " call_limit_seconds",
    "reconciliation_workerprocess": "id host boot pid start_ticks started_at",
    "reconciliation_reservation": "id operation_id allowance_id",
    "reconciliation_dependency": "name",
    "reconciliation_case": "number key operation_id kind opened_at",
    "reconciliation_theirname": "id system name operation_id",
    "reconciliation_casenotice": "id case_id recipient_id stage created_at",
    "reconciliation_statement": "number key system source asked_by_id created_at",
    "reconciliation_statementline": "id statement_id number key reference identity account amount_minor currency at"
    " void raw",
    "reconciliation_difference": "id key statement_id case_id line_id found_at",
    "runs_signal": "id run_id key kind payload sender_id received_at",
    "runs_streamhead": "stream",
    "runs_wait": "id run_id key kind event starts due_at began_at",
}


def tables() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename ~ %s", [OURS])
        yield from (row[0] for row in cursor.fetchall())


def may(right: str, table: str) -> bool:
    """On the table, or on any column of it."""
    with connection.cursor() as cursor:
        if right in ("DELETE", "TRUNCATE"):
            cursor.execute("SELECT has_table_privilege(%s, %s, %s)", [ROLE, table, right])
        else:
            cursor.execute("SELECT has_any_column_privilege(%s, %s, %s)", [ROLE, table, right])
        return bool(cursor.fetchone()[0])


def test_every_table_of_the_product_is_judged_here(db: str) -> None:
    assert set(tables()) == APPEND_ONLY | set(FROZEN)


def test_nothing_of_the_product_is_ever_deleted(db: str) -> None:
    assert [(name, right) for name in tables() for right in ("DELETE", "TRUNCATE") if may(right, name)] == []


def test_what_happened_is_only_added_to(db: str) -> None:
    assert [name for name in APPEND_ONLY if may("UPDATE", name)] == []


def test_what_is_fixed_stays(db: str) -> None:
    open_ones = []
    checked = 0
    for table, columns in FROZEN.items():
        for column in columns.split():
            checked += 1
            with connection.cursor() as cursor:
                cursor.execute("SELECT has_column_privilege(%s, %s, %s, 'UPDATE')", [ROLE, table, column])
                if cursor.fetchone()[0]:
                    open_ones.append(f"{table}.{column}")
    assert open_ones == [] and checked > 100


def test_the_role_owns_nothing_and_is_nobody_special(db: str, owner: psycopg.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, session_user")
        assert cursor.fetchone() == (ROLE, ROLE)
        cursor.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles WHERE rolname = %s", [ROLE]
        )
        assert cursor.fetchone() == (False, False, False, False)
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tableowner = %s", [ROLE])
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT pg_has_role(%s, %s, 'MEMBER')", [ROLE, owner.info.user])
        assert cursor.fetchone() == (False,)


@pytest.mark.parametrize(
    "statement",
    [
        "SET session_replication_role = replica",
        "ALTER TABLE runs_run DISABLE TRIGGER ALL",
        "DROP TRIGGER run_edges ON runs_run",
        "TRUNCATE runs_event",
        "DELETE FROM runs_run",
        "DELETE FROM reconciliation_resourcehold",
        "UPDATE runs_event SET kind = kind",
        "UPDATE approvals_vote SET choice = choice",
        "UPDATE reconciliation_operation SET effect = effect",
        "UPDATE reconciliation_operation SET key_held = true",
        "UPDATE reconciliation_correction SET evidence = evidence",
        "UPDATE reconciliation_attempt SET request = request",
        "UPDATE runs_run SET capabilities = capabilities",
        "INSERT INTO runs_stateedge (machine, source, target) VALUES ('run', 'queued', 'completed')",
        "CREATE TABLE own (id int)",
        "SET ROLE agentops_owner",
    ],
)
def test_the_application_tries_and_is_refused(db: str, statement: str) -> None:
    with pytest.raises(ProgrammingError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert getattr(refused.value.__cause__, "sqlstate", "") == "42501"  # insufficient_privilege


def test_a_right_given_by_mistake_is_seen(db: str, owner: psycopg.Connection) -> None:
    assert not may("UPDATE", "runs_event")
    owner.execute(f"GRANT UPDATE (kind) ON runs_event TO {ROLE}")
    assert may("UPDATE", "runs_event")
    owner.execute(f"GRANT DELETE ON approvals_vote TO {ROLE}")
    assert may("DELETE", "approvals_vote")
