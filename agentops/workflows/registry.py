"""Every workflow there is, by name and version. Adding one is a line here; a used version stays for its runs."""

from agentops.workflows.base import Workflow
from agentops.workflows.correction_notice import CorrectionNotice
from agentops.workflows.reversal import Reversal
from agentops.workflows.service_credit import ServiceCredit

WORKFLOWS: dict[str, dict[str, Workflow]] = {
    "service_credit": {"1": ServiceCredit()},
    "correction_notice": {"1": CorrectionNotice()},
    "reversal": {"1": Reversal()},
}


class UnknownWorkflow(LookupError):
    """No workflow has this name or version; the message lists those that exist."""


def workflow(name: str, version: str | None = None) -> Workflow:
    """The workflow at a version, or at its newest (the last of its entries). Raises UnknownWorkflow."""
    versions = WORKFLOWS.get(name)
    if versions is None:
        raise UnknownWorkflow(f"there is no workflow {name!r}; there are {', '.join(sorted(WORKFLOWS))}")
    chosen = list(versions)[-1] if version is None else version
    if chosen not in versions:
        raise UnknownWorkflow(f"workflow {name} has no version {chosen!r}; it has {', '.join(versions)}")
    return versions[chosen]
