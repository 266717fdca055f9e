"""One place sends, one place opens attempts, one place makes operations and decisions, and states take their edges.

Read from the code's syntax, so that a second place is found the moment it is written.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
APPS = ("agentops", "reconciliation", "approvals", "runs")
MAKERS = {"create", "bulk_create", "get_or_create", "update_or_create", "acreate", "abulk_create"}

# what is made where: model → the places, as file:function
MADE_IN = {
    "Attempt": {"reconciliation/services/execute.py:_open"},
    "Operation": {"reconciliation/services/execute.py:_spend"},
    "Reservation": {"reconciliation/services/execute.py:_spend"},
    "Decision": {
        "approvals/services/deciding.py:decide",
        "approvals/services/requests.py:policy_decision",
        "approvals/services/standing_use.py:decide",
    },
    "Vote": {"approvals/services/votes.py:_count"},
    "Proposal": {"runs/keeping.py:keep_proposal"},
    "Event": set(),  # the record writes its rows in SQL
}
WRITES_ROWS = {
    "runs/record.py:",
    "runs/db.py:edges",  # for migrations
    "reconciliation/services/gates.py:",  # what all workers share is written and asked for by one statement
    "reconciliation/services/holds.py:take",
    "reconciliation/their_names.py:",  # kept unless it is taken, in one statement
}
# the second one tries a connector out, where its effects do no harm
SENDS = {"agentops/steps/executing.py:call", "runs/tools/conformance.py:send"}
# a request is locked and read again just before its edge is taken
SETS_STATE = {"approvals/services/requests.py:_leave_approved"}
UPDATES_STATE = {
    "reconciliation/moves.py:close_reservations",
    "reconciliation/moves.py:book",
    "reconciliation/moves.py:give_back",
}  # reservations are no machine
SAVES_STATE = {"runs/transitions.py:move"}  # with the line of the record that says so
RAW_ROW = re.compile(r"\binsert\s+into\s+(runs|approvals|reconciliation)_", re.IGNORECASE)
RAW_STATE = re.compile(r"\bupdate\s+\w+\s+set\b[^;]*\bstate\s*=", re.IGNORECASE | re.DOTALL)


def sources() -> Iterator[tuple[str, str]]:
    for app in APPS:
        for path in sorted((REPO / app).rglob("*.py")):
            name = str(path.relative_to(REPO))
            if "/migrations/" not in name and not name.startswith("agentops/sandbox/"):
                yield name, path.read_text()


def calls(tree: ast.AST, where: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the name of the innermost function around it."""
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else where
        yield inner, node
        yield from calls(node, inner)


def _dotted(node: ast.AST) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*([node.id] if isinstance(node, ast.Name) else []), *reversed(names)]


def _makes(node: ast.Call) -> str:
    """The model that this call makes a row of: `X.objects.create(…)`, or `X(…)`."""
    names = _dotted(node.func)
    if len(names) >= 3 and names[-1] in MAKERS and names[-2] == "objects":
        return names[-3]
    if names and names[-1] in MADE_IN and any(keyword.arg for keyword in node.keywords):
        return names[-1]
    return ""


def _sends(node: ast.Call) -> bool:
    """A connector's `send`: by its keywords, whatever the connector or the call is named."""
    return {keyword.arg for keyword in node.keywords} >= {"effect", "identity", "wire_key"}


def _saves_state(node: ast.Call) -> bool:
    """A line of the record that takes the run's state along."""
    given = [keyword.value for keyword in node.keywords if keyword.arg == "saving"]
    return any(isinstance(one, ast.Constant) and one.value == "state" for value in given for one in ast.walk(value))


def violations(name: str, code: str) -> list[str]:
    found = []
    for where, node in calls(ast.parse(code)):
        place = f"{name}:{where}"
        if isinstance(node, ast.Call):
            model = _makes(node)
            if model in MADE_IN and place not in MADE_IN[model]:
                found.append(f"{place} makes a {model}")
            if _sends(node) and place not in SENDS:
                found.append(f"{place} sends")
            if _saves_state(node) and place not in SAVES_STATE:
                found.append(f"{place} saves a state past its machine")
            updates = isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "bulk_update")
            if updates and any(keyword.arg == "state" for keyword in node.keywords) and place not in UPDATES_STATE:
                found.append(f"{place} writes a state past its machine")
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        sets = any(isinstance(one, ast.Attribute) and one.attr == "state" for one in targets)
        if sets and isinstance(node, ast.Assign | ast.AugAssign) and place not in SETS_STATE:
            found.append(f"{place} sets a state past its machine")
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if RAW_STATE.search(text):
            found.append(f"{place} writes a state in SQL")
        if RAW_ROW.search(text) and place not in WRITES_ROWS:
            found.append(f"{place} writes rows in SQL")
        connector = isinstance(node, ast.ImportFrom) and re.fullmatch(r"runs\.tools\.\w+\.live", node.module or "")
        if connector and not name.startswith("runs/tools/"):
            found.append(f"{place} takes a connector past the registry")
    return found


def test_there_is_one_sender_and_one_maker_of_everything_that_counts() -> None:
    read = list(sources())
    assert len(read) > 100
    assert [found for name, text in read for found in violations(name, text)] == []


def test_each_place_that_is_allowed_is_really_there() -> None:
    """An exception nobody needs any more is a hole."""
    read = dict(sources())
    for model, places in MADE_IN.items():
        for place in places:
            name, _, function = place.partition(":")
            made = {(where, _makes(node)) for where, node in calls(ast.parse(read[name])) if isinstance(node, ast.Call)}
            assert (function, model) in made, place
    for place in SENDS:
        name, _, function = place.partition(":")
        sending = {where for where, node in calls(ast.parse(read[name])) if isinstance(node, ast.Call) and _sends(node)}
        assert function in sending
    for place in SAVES_STATE:
        name, _, function = place.partition(":")
        saving = {
            where for where, node in calls(ast.parse(read[name])) if isinstance(node, ast.Call) and _saves_state(node)
        }
        assert function in saving
    for place in WRITES_ROWS:
        assert RAW_ROW.search(read[place.partition(":")[0]])
    for place in SETS_STATE | UPDATES_STATE:
        name, _, function = place.partition(":")
        assert function in {where for where, _ in calls(ast.parse(read[name]))}


PLANTED = [
    ("Attempt.objects.create(operation=one)", "makes a Attempt"),
    ("models.Attempt.objects.bulk_create([])", "makes a Attempt"),
    ("Attempt(operation=one, number=1).save()", "makes a Attempt"),
    ("Operation.objects.get_or_create(proposal=one)", "makes a Operation"),
    ("Event(stream='run:1', seq=1).save()", "makes a Event"),
    ("cursor.execute('INSERT INTO runs_event (seq) VALUES (1)')", "writes rows in SQL"),
    ("record.append(run=run, saving=['state', *others])", "saves a state past its machine"),
    ("Decision.objects.create(approved=True)", "makes a Decision"),
    ("tool(name).send(effect=e, identity=i, wire_key=k)", "sends"),
    ("connector.send(effect=e, identity=i, wire_key=k)", "sends"),
    ("go = connector.send\n    go(effect=e, identity=i, wire_key=k)", "sends"),
    ("run.state = 'completed'", "sets a state past its machine"),
    ("Run.objects.filter(pk=1).update(state='completed')", "writes a state past its machine"),
    ("cursor.execute(\"UPDATE runs_run SET lease_until = NULL, state = 'failed'\")", "writes a state in SQL"),
    ("from runs.tools.billing.live import CreateCredit", "takes a connector past the registry"),
]


@pytest.mark.parametrize(("line", "told"), PLANTED)
def test_a_second_place_is_found(line: str, told: str) -> None:
    found = violations("agentops/pages/new.py", f"def shortcut():\n    {line}\n")
    assert found == [f"agentops/pages/new.py:shortcut {told}"]


def test_the_allowed_place_itself_is_not_found() -> None:
    text = "def _open():\n    Attempt.objects.create(operation=one)\n"
    assert violations("reconciliation/services/execute.py", text) == []
    assert violations("reconciliation/services/other.py", text) != []
