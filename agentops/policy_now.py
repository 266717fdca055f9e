"""What policies are told of an action, and what the one in force says of an action that people were asked about."""

from typing import Any

from agentops.workflows.base import Facts, Workflow
from agentops.workflows.registry import UnknownWorkflow, workflow
from approvals.evaluation import Verdict, evaluate
from approvals.models import ApprovalRequest, PolicyVersion
from reconciliation import windows
from runs import keeping
from runs.actions import Action
from runs.models import Run


def variables(*, run: Run, known: Workflow, action: Action, facts: Facts) -> dict[str, Any]:
    """The policy's variables: the workflow's own, and whose run it is."""
    return {**known.variables(action=action, facts=facts), "agent": run.agent.key}


def verdict(*, request: ApprovalRequest, version: PolicyVersion) -> Verdict:
    """On the facts as they were read last. A workflow that is gone cannot say what its action means: denied."""
    run, proposal = request.run, request.proposal
    try:
        entry = workflow(run.workflow, run.workflow_version)
    except UnknownWorkflow as problem:
        return Verdict(effect="deny", code="unknown_workflow", text=f"{problem}.")
    told = variables(run=run, known=entry, action=proposal.action(), facts=keeping.newest_facts(run=run))
    return evaluate(document=version.rules, variables=told, counted=windows.counted(proposal=proposal))
