"""What can be frozen here, by name, and how much a freeze holds now. The words of its acts and refusals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentops.workflows.registry import WORKFLOWS
from approvals import freezes
from approvals.models.freeze import EVERYTHING
from reconciliation.models import Operation
from reconciliation.models.operation import IN_FLIGHT
from runs.models import Run
from runs.tools.registry import TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """`runs` are live and may be held by a freeze, `in_flight` of them have sent something that is not settled."""

    runs: int
    in_flight: int


def scopes() -> dict[str, str]:
    """Each scope that exists, with its words: everything, then workflows, then tools."""
    found = {EVERYTHING: "Everything"}
    found |= {freezes.of_workflow(name): f"Workflow {name}" for name in sorted(WORKFLOWS)}
    return found | {freezes.of_tool(name): f"Tool {name}" for name in sorted(TOOLS)}


def reach(*, scope: str) -> Reach:
    """Two counts."""
    under = Run.objects.filter(freezes.runs_under(scope=scope))
    flying = Operation.objects.filter(state__in=IN_FLIGHT, run__in=under)
    if scope.startswith("tool:"):
        flying = flying.filter(tool=scope.partition(":")[2])
    return Reach(runs=under.count(), in_flight=flying.count())


CONSEQUENCE = (
    "From the moment this is recorded nothing new is sent under it. Runs stop at their next step and wait; approving"
    " stops, rejecting stays possible, and the time to answer stands still. What was sent already is still asked about"
    " and settled. Nothing is lost: lifting it lets every run go on where it was."
)
LIFT_CONSEQUENCE = (
    "What it held goes on where it was, by and by, and every check is made again before anything is sent. Requests get"
    " the time back for which their clock stood still, but no approval is good for longer than it was said to be."
)
_SAID = {
    "no_right": "Your rights have changed: this takes an active account with the right to freeze. Nothing was changed.",
    "reason_needed": "Say why: the reason is shown to everybody while the freeze lasts, and stays in the record.",
    "already_frozen": "It is frozen already, by {words}. Nothing was changed.",
    "unknown_scope": "There is nothing of that name to freeze. Nothing was changed.",
    "no_such_freeze": "There is no such freeze. Nothing was changed.",
    "already_lifted": "{by} has lifted it already. Nothing was changed.",
    "not_yours": "This freeze is {by}'s; an integration lifts only what it froze itself. Nothing was changed.",
}


def say(*, code: str, detail: Mapping[str, Any]) -> str:
    """Why freezing or lifting was refused."""
    told = {"by": "Somebody", "words": "somebody else", **{key: str(value) for key, value in detail.items()}}
    if told["words"].startswith("a freeze of "):
        told["words"] = told["words"].partition(" by ")[2]
    return _SAID.get(code, f"Not done ({code}). Nothing was changed.").format_map(told)
