"""Runs for these pages, made row by row: the record is written by the product's own recorder under a scripted clock."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Any
from unittest import mock

from django.contrib.auth.models import Permission, User
from django.db import transaction

from approvals.models import ApprovalRequest, Decision, Policy, PolicyVersion, Vote
from reconciliation.models import Attempt, Case, Observation, Operation, WorkerProcess
from runs import record, transitions
from runs.models import Evidence, ModelCall, Principal, Proposal, Run
from runs.models.run import RunState
from runs.services import principals
from tests import stages

S = RunState
NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
EFFECT = {
    "account": "ACC-1093",
    "account_name": "Acme Corp",
    "customer": "cus_acme",
    "invoice": "INV-2041",
    "invoice_version": "3",
    "amount_minor": "120000",
    "currency": "USD",
    "memo": "SLA credit, outage 22 Oct 2026 (INC-311)",
}


@contextlib.contextmanager
def at(moment: dt.datetime) -> Iterator[None]:
    """The database's clock, as the product reads it, stands at `moment`."""
    with mock.patch("runs.clock.now", return_value=moment):
        yield


def person(name: str, *permissions: str) -> User:
    user = User.objects.filter(username=name).first() or User.objects.create_user(
        name, password="a long password", first_name=name.capitalize(), last_name="Example"
    )
    for full in permissions:
        app, _, code = full.partition(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=code))
    return user


def support(name: str = "priya") -> User:
    return person(
        name, "runs.view_run", "runs.operate_run", "reconciliation.view_case", "reconciliation.view_operation"
    )


def admin(name: str = "tomas") -> User:
    return person(
        name, "runs.view_run", "runs.operate_run", "reconciliation.view_case", "reconciliation.view_operation",
        "reconciliation.settle_case",
    )  # fmt: skip


def new_run(*, title: str = "Service credit for Acme Corp", subject: str = "CS-8812", **fields: Any) -> Run:
    number = Run.objects.count() + 1
    make = principals.find_or_make
    kinds = Principal.Kind
    values = {
        "workflow": "service_credit",
        "workflow_version": "1",
        "start_key": f"test:{number}",
        "input": {"ticket": subject},
        "input_digest": "0" * 64,
        "title": title,
        "subject": subject,
        "customer": "Acme Corp",
        "initiator": make(kind=kinds.INTEGRATION, key="integration:helpdesk", label="Help desk"),
        "run_as": make(kind=kinds.SERVICE, key="service:agentops", label="agentops service"),
        "agent": make(kind=kinds.AGENT, key="agent:service-credit", label="Service credit agent"),
        **fields,
    }
    return Run.objects.create(**values)


@transaction.atomic
def tell(run: Run, kind: str, /, **data: Any) -> None:
    """Append to the run's record, as its agent."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    record.append(run=locked, kind=kind, actor=data.pop("_actor", None) or locked.agent, **data)
    run.refresh_from_db()


@transaction.atomic
def move(run: Run, to: RunState, why: str = "", **fields: Any) -> None:
    locked = Run.objects.select_for_update().get(pk=run.pk)
    transitions.move(run=locked, to=to, actor=principals.system(), why=why, **fields)
    run.refresh_from_db()


def version() -> PolicyVersion:
    policy, _ = Policy.objects.get_or_create(slug="service-credits", defaults={"name": "Service credits"})
    return PolicyVersion.objects.get_or_create(
        policy=policy,
        number=1,
        defaults={"rules": {"rules": []}, "digest": "0" * 64, "published_by": principals.system()},
    )[0]


def propose(run: Run, *, number: int = 1, tool: str = "billing.create_credit", amount: int | None = 120000) -> Proposal:
    identity = f"local/{tool}/{run.id}-{number}"
    return Proposal.objects.create(
        run=run,
        number=number,
        step="credit" if amount else "ticket",
        proposer=run.agent,
        tool=tool,
        contract_version="1",
        effect={**EFFECT, **({"amount_minor": str(amount)} if amount else {})},
        action_digest="0" * 64,
        identity=identity,
        business_key=f"{tool}/{run.id}/{number}",
        amount_minor=amount,
        currency="USD" if amount else "",
        reading=1,
        rests_on=[],
        rationale="The outage lasted 214 minutes, so the business plan's SLA gives 10 % of the month.",
    )


def ask(run: Run, proposal: Proposal, **fields: Any) -> ApprovalRequest:
    with_ = {"respond_by": NOW + dt.timedelta(hours=2), "valid_until": NOW + dt.timedelta(hours=3), **fields}
    request = ApprovalRequest.objects.create(
        run=run,
        proposal=proposal,
        ask="Issue $1,200.00 service credit to Acme Corp",
        action_digest="0" * 64,
        binding_digest="0" * 64,
        page=[{"key": "amount", "label": "Amount", "value": "$1,200.00 USD"}],
        page_digest="0" * 64,
        policy_version=version(),
        rules=[{"id": "above-1000", "text": "credits above $1,000 need a support manager"}],
        group="manager",
        **with_,
    )
    stages.one(request)
    return request


def decide(proposal: Proposal, *, request: ApprovalRequest | None = None, approved: bool = True) -> Decision:
    return Decision.objects.create(
        kind="people" if request else "policy",
        approved=approved,
        proposal=proposal,
        request=request,
        policy_version=version(),
        rules=[],
        votes=stages.made_by(request, approved=approved) if request else [],
        binding_digest="0" * 64,
        decided_at=NOW,
        valid_until=NOW + dt.timedelta(hours=1),
    )


def vote(request: ApprovalRequest, user: User, choice: str = "approve", comment: str = "") -> Vote:
    return Vote.objects.create(
        request=request,
        stage=stages.one(request),
        principal=principals.of_user(user=user),
        choice=choice,
        comment=comment,
        page_digest="0" * 64,
        binding_digest="0" * 64,
        authenticated_by="password",
        group="manager",
        channel="page",
        at=NOW,
    )


def operate(proposal: Proposal, decision: Decision) -> Operation:
    return Operation.objects.create(
        run=proposal.run,
        proposal=proposal,
        decision=decision,
        tool=proposal.tool,
        contract_version="1",
        system=proposal.tool.partition(".")[0],
        identity=proposal.identity,
        business_key=proposal.business_key,
        effect=proposal.effect,
        amount_minor=proposal.amount_minor,
        currency=proposal.currency,
    )


def shift(operation: Operation, *states: str, **fields: Any) -> Operation:
    """Along the operation's edges, one update each, so that the database's guards agree."""
    for state in states[:-1]:
        Operation.objects.filter(pk=operation.pk).update(state=state)
    Operation.objects.filter(pk=operation.pk).update(state=states[-1], **fields)
    operation.refresh_from_db()
    return operation


def attempt(operation: Operation, number: int, opened: dt.datetime, **closed: Any) -> Attempt:
    sender, _ = WorkerProcess.objects.get_or_create(host="worker-1", boot="boot", pid=41, start_ticks=7)
    return Attempt.objects.create(
        operation=operation,
        number=number,
        epoch=0,
        wire_key=f"{operation.identity}:0",
        request='{"amount_minor":"120000"}',
        sender=sender,
        opened_at=opened,
        send_before=opened + dt.timedelta(seconds=20),
        call_limit_seconds=10,
        **closed,
    )


def observe(operation: Operation, finding: str, moment: dt.datetime, summary: str, **fields: Any) -> Observation:
    return Observation.objects.create(
        operation=operation,
        source=fields.pop("source", "probe"),
        finding=finding,
        summary=summary,
        actor=principals.system(),
        asked_at=moment,
        at=moment,
        **fields,
    )


def evidence(run: Run, kind: str, title: str, text: str, reading: int = 1, **fields: Any) -> Evidence:
    return Evidence.objects.create(
        run=run,
        reading=reading,
        kind=kind,
        source=fields.pop("source", "billing"),
        locator=f"{kind}/{title}",
        version="3",
        title=title,
        summary=text,
        authoritative=True,
        untrusted=kind == "ticket",
        content={"text": text},
        content_digest="0" * 64,
        bound_digest="0" * 64,
        **fields,
    )


def model_call(run: Run, moment: dt.datetime, **fields: Any) -> ModelCall:
    return ModelCall.objects.create(
        run=run,
        reading=1,
        provider="rules",
        model="rules-1",
        view={"ticket": {"untrusted_text": "We were down all afternoon."}, "incident": "INC-311"},
        answer={"kind": "issue_credit", "amount_minor": 120000},
        started_at=moment,
        finished_at=moment + dt.timedelta(seconds=3),
        **fields,
    )


def open_case(operation: Operation, why: str, **fields: Any) -> Case:
    return Case.objects.create(operation=operation, kind="not_confirmed", why=why, **fields)
