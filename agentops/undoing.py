"""Runs for reversals: what was proposed to be undone gets a run of its own, once, and what came of it is booked."""

import logging
import uuid

from agentops.busy import is_busy, is_gone
from agentops.workflows.registry import workflow
from agentops.workflows.reversal import Reversal as ReversalWorkflow
from reconciliation.models import Reversal
from reconciliation.reversing import START_KEY
from reconciliation.services import reversals
from runs import faultpoints
from runs.models import Principal, Run
from runs.services import principals, runs

log = logging.getLogger(__name__)


def work_off(*, limit: int) -> int:
    """Everything that is due about reversals; returns how many were looked at. One that fails holds up no other."""
    done = 0
    for reversal_id in [*reversals.due(limit=limit), *reversals.done_after_all(limit=limit)]:
        try:
            _look(reversal_id)
        except Exception as problem:
            if is_gone(problem=problem):
                raise
            if not is_busy(problem=problem):
                log.exception("reversal %s could not be followed up", reversal_id)
            continue
        done += 1
    return done


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
