"""What the application's own role may never do to what was asked, voted and decided."""

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from approvals.models import ApprovalRequest, Decision, PolicyVersion, Refusal, Viewing, Vote
from approvals.models.request import RequestState
from approvals.services import requests
from runs.ids import new_id
from runs.models import Evidence
from runs.services import principals
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


def sqlstate(statement: str) -> str | None:
    """The code with which the database refuses the statement; None when it lets it pass (rolled back either way)."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
            transaction.set_rollback(True)
    except DatabaseError as error:
        assert isinstance(error.__cause__, psycopg.Error)
        return error.__cause__.sqlstate
    return None


@pytest.fixture
def decided(db: str) -> world.Asked:
    anna, bert = world.user("anna"), world.user("bert")
    asked = world.ask()
    requests.record_viewing(request_id=asked.request.pk, user=anna)
    world.cast(asked, anna)
    world.cast(asked, bert)
    for model in (Vote, Decision, PolicyVersion, Evidence, Viewing, Refusal, ApprovalRequest):
        assert model.objects.exists()
    return asked


UPDATES = {
    "approvals_vote": "choice = 'reject', comment = 'x'",
    "approvals_decision": "approved = NOT approved",
    "approvals_policyversion": "rules = '{}'",
    "approvals_refusal": "code = 'x'",
    "approvals_viewing": "at = now()",
    "runs_evidence": "version = '9'",
    "approvals_policytool": "tool = 'x'",
}


@pytest.mark.parametrize("table", UPDATES)
def test_nothing_is_changed_or_removed_afterwards(table: str, decided: world.Asked) -> None:
    assert sqlstate(f"UPDATE {table} SET {UPDATES[table]}") == "42501"
    assert sqlstate(f"DELETE FROM {table}") == "42501"
    assert sqlstate(f"TRUNCATE {table} CASCADE") == "42501"


@pytest.mark.parametrize(
    "column", ["page", "page_digest", "binding_digest", "action_digest", "valid_until", "quorum", "rules"]
)
def test_what_was_asked_stays_as_it_was_asked(column: str, decided: world.Asked) -> None:
    assert sqlstate(f"UPDATE approvals_approvalrequest SET {column} = {column}") == "42501"
    assert sqlstate(f"UPDATE approvals_approvalrequest SET \"group\" = 'x', {column} = {column}") == "42501"
    assert sqlstate("DELETE FROM approvals_approvalrequest") == "42501"


def test_a_deadline_only_moves_on_while_it_is_open_and_by_the_time_it_was_stopped(db: str) -> None:
    world.user("anna")
    asked = world.ask()
    move = "UPDATE approvals_approvalrequest SET respond_by = respond_by + interval '{}', stopped_for = interval '{}'"
    assert sqlstate(move.format("1 minute", "1 minute")) is None
    for moved, stopped in (("-1 minute", "-1 minute"), ("2 minutes", "1 minute"), ("900 days", "900 days")):
        assert sqlstate(move.format(moved, stopped)) == "23001"
    with transaction.atomic():
        requests.close_open(run=asked.run, to=RequestState.WITHDRAWN, why="x", actor=principals.system())
    assert sqlstate(move.format("1 minute", "1 minute")) == "23001"


@pytest.mark.parametrize(
    "state", [state for state in RequestState if state not in ("spent", "stale", "expired", "revoked")]
)
def test_an_approved_request_takes_no_other_edge(state: str, decided: world.Asked) -> None:
    statement = f"UPDATE approvals_approvalrequest SET state = '{state}'"
    assert sqlstate(statement) == (None if state == RequestState.APPROVED else "23001")


def test_locks_need_no_more_than_the_role_has(decided: world.Asked) -> None:
    for table in ("approvals_decision", "approvals_policy", "approvals_approvalrequest", "auth_user", "auth_group"):
        assert sqlstate(f"SELECT 1 FROM {table} FOR SHARE") is None


def test_no_second_vote_and_no_second_decision_of_a_request(decided: world.Asked) -> None:
    copy = "SELECT gen_random_uuid(), {} FROM {}"
    vote = "request_id, stage_id, principal_id, choice, comment, page_digest, binding_digest, authenticated_by"
    vote += ', "group", channel, at'
    decision = (
        "kind, approved, proposal_id, request_id, policy_version_id, rules, votes, binding_digest, decided_at,"
        " valid_until"
    )
    # the stage has its people, so it takes no vote at all
    for table, columns, state in (("approvals_vote", vote, "23001"), ("approvals_decision", decision, "23505")):
        assert sqlstate(f"INSERT INTO {table} (id, {columns}) {copy.format(columns, table)}") == state


def test_an_amount_is_whole_positive_and_of_a_currency_or_there_is_none(decided: world.Asked) -> None:
    changed = f'{{"id": "{new_id()}", "number": 2, "identity": "another"}}'

    def proposing(minor: str, currency: str) -> str | None:
        money = f"jsonb_build_object('amount_minor', {minor}::bigint, 'currency', '{currency}')"
        made = f"(jsonb_populate_record(one, '{changed}'::jsonb || {money})).*"
        return sqlstate(f"INSERT INTO runs_proposal SELECT {made} FROM runs_proposal one")

    assert {proposing(*good) for good in (("1", "JPY"), ("999999999999999", "KWD"), ("NULL", ""))} == {None}
    for minor in ("0", "-5", "1000000000000000", "NULL"):
        assert proposing(minor, "USD") == "23514", minor
    for currency in ("", "usd", "US", "١٢٣"):
        assert proposing("1", currency) == "23514", currency
