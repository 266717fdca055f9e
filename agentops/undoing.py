"""Runs for reversals: what was proposed to be undone gets a run of its own, once, and what came of it is booked.

What fails is written down with the reversal, tried again, and is a person's at last: see `reversals.note_failure`.
"""

import uuid

from agentops.workflows.registry import workflow
from agentops.workflows.reversal import Reversal as ReversalWorkflow
from reconciliation.models import Reversal
from reconciliation.reversing import START_KEY
from reconciliation.services import reversals
from runs import faultpoints, one_by_one
from runs.models import Principal, Run
from runs.services import principals, runs


def work_off(*, limit: int) -> int:
    """Everything that is due about reversals; returns how many were looked at. Raises `one_by_one.NotAll`: what failed
    is written down with the reversals it names."""
    return one_by_one.work_off(
        items=[*reversals.due(limit=limit), *reversals.done_after_all(limit=limit)],
        do=_look,
        name=lambda reversal_id: f"reversal {reversal_id}",
        failed=lambda reversal_id, problem: reversals.note_failure(
            reversal_id=reversal_id, problem=f"{type(problem).__name__}: {problem}"
        ),
    )


def _look(reversal_id: uuid.UUID) -> None:
    reversal = Reversal.objects.select_related("operation__run__initiator", "proposed_by").get(pk=reversal_id)
    if reversal.run_id is None:
        run = _start(reversal)
        faultpoints.reach("reversal.started")
        reversals.link(reversal_id=reversal_id, run=run)
    else:
        reversals.follow_up(reversal_id=reversal_id)


def _start(reversal: Reversal) -> Run:
    """The reversal's own id makes it one run, however often somebody dies in between. Whoever proposed it has started
    it, so they never approve it."""
    known = workflow(ReversalWorkflow.name)
    data = known.Input.model_validate(
        {
            "reversal": str(reversal.pk),
            "reference": reversal.reference,
            "tool": reversal.tool,
            "effect": reversal.effect,
            "reason": f"{reversal.proposed_by}: {reversal.reason}",
        }
    ).plain_dict()
    subject = known.subject(data=data)
    make = principals.find_or_make
    return runs.start(
        workflow=known.name,
        workflow_version=known.version,
        title=subject.title,
        subject=subject.subject,
        data=data,
        start_key=f"{START_KEY}{reversal.pk}",
        capabilities=[reversal.tool],
        initiator=reversal.proposed_by,
        run_as=make(kind=Principal.Kind.SERVICE, key="service:reversal", label="Reversal service"),
        agent=make(kind=Principal.Kind.WORKFLOW, key="workflow:reversal", label="Reversal workflow"),
    ).run
