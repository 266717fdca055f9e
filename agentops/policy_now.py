"""What the policy in force says of an action that people were asked about under another version of it."""

from agentops.workflows.registry import UnknownWorkflow, workflow
from approvals.evaluation import Verdict, evaluate
from approvals.models import ApprovalRequest, PolicyVersion
from runs import keeping


def verdict(*, request: ApprovalRequest, version: PolicyVersion) -> Verdict:
    """On the facts as they were read last. A workflow that is gone cannot say what its action means: denied."""
    run, proposal = request.run, request.proposal
    try:
        entry = workflow(run.workflow, run.workflow_version)
    except UnknownWorkflow as problem:
        return Verdict(effect="deny", code="unknown_workflow", text=f"{problem}.")
    variables = entry.variables(action=proposal.action(), facts=keeping.newest_facts(run=run))
    return evaluate(document=version.rules, variables=variables)
