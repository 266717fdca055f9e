"""A code that one place gives and another acts on is known to both."""

import ast

from agentops.pages import story
from agentops.reasons import Reason
from agentops.steps import executing
from approvals import capabilities
from approvals.models.request import RequestState
from reconciliation import still_allowed
from tests.architecture.test_one_sender import sources

# the run is cancelled next, reads its facts again, or says by another reason that nobody used the approval in time
BY_NAME = {"cancelled", "lapsed", "expired"}


def given(kind: str, *, within: str) -> set[str]:
    """The codes that are written where such an object is made."""
    return {
        keyword.value.value
        for name, text in sources()
        if name.startswith(within)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == kind
        for keyword in node.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    }


def test_a_decision_that_no_longer_counts_always_takes_the_run_somewhere() -> None:
    """What is not read again hands the run to a person for a reason that has its words."""
    codes = given("Void", within="reconciliation/") | given("Objection", within="reconciliation/room.py")
    codes |= still_allowed._PROBLEMS.keys() | capabilities.SENTENCES.keys()
    assert {"altered", "over_limit", "rights_lost", "grant_over"} <= codes
    assert codes - BY_NAME - executing.VOID_READ_AGAIN - set(Reason) == set()
    assert codes >= BY_NAME | executing.VOID_READ_AGAIN


def test_what_is_written_into_a_runs_record_has_its_words_and_every_word_is_written() -> None:
    """Names of kinds that are put together: what closes a request is its new state."""
    written, named = set(), {f"request.{state}" for state in RequestState}
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and not name.startswith("agentops/pages/")
            ):
                named.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "record.append":
                kinds = [keyword.value for keyword in node.keywords if keyword.arg == "kind"]
                written |= {one.value for one in kinds if isinstance(one, ast.Constant)}
    assert {"run.state", "evidence.read", "operation.state", "case.opened"} <= written
    assert written - story._TOLD.keys() == set()
    assert story._TOLD.keys() - named == set()
