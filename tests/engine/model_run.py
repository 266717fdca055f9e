"""A made-up tool, time that passes only when told to, and a run that was allowed to use the tool."""

import datetime as dt
import uuid
from dataclasses import dataclass, replace

from django.db import transaction

from approvals.evaluation import Verdict
from approvals.queries import newest_binding
from approvals.services import policies, requests
from runs import keeping, leases
from runs.actions import Action
from runs.models import Principal, Proposal, Run
from runs.services import principals
from runs.tools.base import Compensation, Contract, ForwardOnly, Made
from runs.tools.billing.contract import CREATE_CREDIT
from tests.engine.receiver_model import Clock

TOOL, UNDO_TOOL = "model.effect", "model.undo"
EFFECT = {"thing": "one"}


def _undo(made: Made) -> dict[str, str]:
    return {"thing": made.reference}


CONTRACT = replace(
    CREATE_CREDIT,
    name=TOOL,
    system="model",
    settling=dt.timedelta(seconds=20),
    call_limit=dt.timedelta(seconds=10),
    retention=dt.timedelta(hours=1),
    business_key=lambda effect: f"model/{effect['thing']}/{uuid.uuid4()}",
    money=lambda effect: None,
    resources=lambda effect: (),
    reversal=Compensation(tool=UNDO_TOOL, effect=_undo),
)
UNDO = replace(CONTRACT, name=UNDO_TOOL, only_reverses=True, reversal=ForwardOnly(why="It is undone for good."))
CONTRACTS = {TOOL: CONTRACT, UNDO_TOOL: UNDO}
START = dt.datetime.now(tz=dt.UTC) - dt.timedelta(days=30)
TIME = Clock(START)


@dataclass(frozen=True)
class Allowed:
    """A run with an action that its policy allows."""

    lease: leases.Lease
    proposal: Proposal
    binding: str


def allowed(*, contract: Contract, effect: dict[str, str], actor: Principal, start_key: str = "") -> Allowed:
    """Begin a run for this one action, hold it, propose and allow."""
    agent = principals.find_or_make(kind=Principal.Kind.WORKFLOW, key="workflow:model", label="Model")
    run = Run.objects.create(
        workflow="model", workflow_version="1", start_key=start_key or str(uuid.uuid4()), input={},
        input_digest="0" * 64, title="Model", subject="Model", capabilities=[contract.name], initiator=agent,
        run_as=agent, agent=agent,
    )  # fmt: skip
    lease = leases.claim(run_id=run.pk, holder="model", seconds=3600)
    assert lease is not None
    with transaction.atomic(durable=True):
        run = leases.hold(lease=lease)
        proposal = keeping.keep_proposal(
            run=run, installation="test", step="it", action=Action(contract.name, "1", effect), contract=contract,
            rests_on=[], workings={}, rationale="", proposer=run.agent,
        )  # fmt: skip
        version = policies.governing(tool=contract.name)
        binding = newest_binding(run=run, proposal=proposal)
        assert version is not None and binding is not None
        requests.policy_decision(
            run=run, proposal=proposal, version=version, verdict=Verdict(effect="allow"), binding_digest=binding,
            valid_for=dt.timedelta(days=365), actor=actor,
        )  # fmt: skip
    return Allowed(lease, proposal, binding)
