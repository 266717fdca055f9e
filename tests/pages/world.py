"""A small fictional world for the pages: people, one policy, and service credits at every stage of their life."""

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from agentops.permissions import ensure_groups
from approvals.models import ApprovalRequest, Decision, Policy, PolicyTool, PolicyVersion, Vote
from approvals.models.request import RequestState
from reconciliation.models import Operation
from runs import clock, record, transitions
from runs.actions import Action
from runs.canonical import digest
from runs.ids import new_id
from runs.models import Evidence, ModelCall, Principal, Proposal, Run
from runs.models.run import RunState
from runs.money import Money
from runs.services import principals
from tests import published, stages

PASSWORD = "a-long-demo-word"
TOOL = "billing.create_credit"
ASKS = {"id": "above-1000", "text": "Credits above $1,000 need a support manager"}
DOCUMENT = {
    "policy": "service-credits",
    "rules": [
        {"id": "standing", "effect": "deny", "text": "No credit while the account is not in good standing",
         "when": "account_standing != 'good'"},
        {"id": "small", "effect": "allow", "text": "Credits up to $1,000 are automatic",
         "when": "currency == 'USD' && amount_minor <= 100000"},
        {**ASKS, "effect": "ask", "when": "currency == 'USD' && amount_minor > 100000",
         "ask": {"group": "manager", "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}},
    ],
    "totals": [
        {"id": "month", "text": "At most $20,000 of credits an account and month",
         "key": ["account", "month", "currency"], "amount": "amount_minor",
         "limits": {"USD": "2000000", "JPY": "3000000"}},
    ],
}  # fmt: skip


def person(name: str, *groups: str) -> User:
    """A user in these groups, with a name, a password and a principal."""
    made = ensure_groups()
    first, _, last = name.partition(" ")
    user = User.objects.create_user(first.lower(), password=PASSWORD, first_name=first, last_name=last)
    user.groups.add(*(made[group] for group in groups))
    principals.of_user(user=user)
    return user


def principal(kind: str, key: str, label: str) -> Principal:
    return principals.find_or_make(kind=Principal.Kind(kind), key=key, label=label)


def policy(*, number: int = 1, document: dict[str, Any] | None = None) -> PolicyVersion:
    """The active version of the service credit policy; a further one is published by two people."""
    document = document or DOCUMENT
    if number > 1:
        note = "Raised after the quarterly review"
        return published.publish(
            slug="service-credits", name="Service credits", tools=[TOOL], document=document, note=note
        )
    kept, _ = Policy.objects.get_or_create(slug="service-credits", defaults={"name": "Service credits"})
    PolicyTool.objects.get_or_create(tool=TOOL, defaults={"policy": kept})
    version, _ = PolicyVersion.objects.get_or_create(
        policy=kept,
        number=number,
        defaults={
            "rules": document,
            "digest": digest(document),
            "note": "First version",
            "published_by": principal("system", "system:agentops", "System"),
        },
    )
    Policy.objects.filter(pk=kept.pk).update(active=version)
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What one request says; every text may be hostile."""

    customer: str = "Acme Corp"
    amount: Money = field(default_factory=lambda: Money(120000, "USD"))
    invoice: str = "INV-2041"
    invoice_version: str = "3"
    memo: str = "SLA credit, outage 22 Oct 2026 (INC-311)"
    rationale: str = (
        "The customer reports about four hours of downtime. The incident report, which is final, records 214 minutes. "
        "That puts October at 99.52 % uptime, inside the 10 % tier.\n\nI propose $1,200.00."
    )
    tool: str = TOOL


def run_of(story: Story) -> Run:
    """A run that has read its facts and is deciding."""
    key = str(new_id())
    run = Run.objects.create(
        workflow="service_credit",
        workflow_version="1",
        start_key=key,
        input={"ticket": "CS-8812"},
        input_digest=digest({"ticket": "CS-8812", "key": key}),
        title=f"Service credit for {story.customer}"[:300],
        subject="CS-8812",
        customer=story.customer[:300],
        capabilities=[TOOL],
        initiator=principal("integration", "integration:helpdesk", "Help desk"),
        run_as=principal("service", "service:credits", "Credit service"),
        agent=principal("agent", "agent:service-credit", "Service credit agent"),
    )
    for state in (RunState.GATHERING, RunState.DECIDING):
        transitions.move(run=run, to=state, actor=principals.system())
    return run


def read(run: Run, *, reading: int, story: Story) -> list[Evidence]:
    """Seven pieces; the first three bind."""
    total = Money(1200000, "USD").display()
    pieces = (
        ("invoice", "billing", story.invoice, story.invoice_version, f"Invoice {story.invoice}",
         f"Total {total}, open, due 30 Nov 2026", True, False),
        ("incident", "status desk", "INC-311", "5", "Incident INC-311",
         "Full outage 13:14 to 16:48 UTC, final", True, False),
        ("sla", "contracts", "business", "2026-02", "SLA schedule", "99.5 % to 99.9 %: 10 % of the month's invoice",
         True, False),
        ("account", "crm", "ACC-1093", "12", "Account ACC-1093", "Business plan, in good standing", True, False),
        ("credits", "billing", "ACC-1093", "3 records", "Credits of ACC-1093", "$300.00 this quarter", True, False),
        ("ticket", "help desk", "CS-8812", "message 2", "Ticket CS-8812",
         "“We were down for about four hours and expect compensation.”", False, True),
    )  # fmt: skip
    contents: dict[str, dict[str, Any]] = {
        "account": {"id": "ACC-1093", "name": story.customer, "plan": "Business", "standing": "good"},
        "sla": {"name": "Business schedule", "plan": "Business", "tiers": [{"below": "99.9", "percent": "10"}]},
        "incident": {"final": True, "started_at": "2026-10-22T13:14:00+00:00", "ended_at": "2026-10-22T16:48:00+00:00"},
        "invoice": {
            "status": "open", "period_start": "2026-10-01T00:00:00+00:00", "currency": story.amount.currency,
            "total_minor": str(story.amount.minor * 10),
        },
    }  # fmt: skip
    made = []
    for kind, source, locator, version, title, summary, weighty, outside in pieces:
        content = {"version": version, **contents.get(kind, {"summary": summary})}
        made.append(
            Evidence.objects.create(
                run=run,
                reading=reading,
                kind=kind,
                source=source,
                locator=locator[:300],
                version=version,
                title=title[:300],
                summary=summary,
                authoritative=weighty,
                untrusted=outside,
                content=content,
                content_digest=digest(content),
                bound_digest=digest(content),
            )
        )
    return made


def workings(story: Story) -> dict[str, Any]:
    rows = (
        ("downtime", "Downtime", "2026-10-22 13:14 to 16:48 UTC", "214 min", "214 min"),
        ("period", "Minutes in the period", "", "44,640", ""),
        ("uptime", "Uptime", "1 − 214 ÷ 44,640", "99.520 %", ""),
        ("tier", "SLA step", "uptime below 99.9 %", "10 %", ""),
        ("total", "Invoice total", "", str(Money(story.amount.minor * 10, story.amount.currency)), ""),
        ("credit", "Credit", "10 % of the total", str(story.amount), str(story.amount)),
    )
    return {
        "steps": [
            {"key": key, "label": label, "detail": detail, "system": system, **({"agent": agent} if agent else {})}
            for key, label, detail, system, agent in rows
        ],
        "tiers": [
            {"below": "99.5 %", "percent": "25 %", "reached": False},
            {"below": "99.9 %", "percent": "10 %", "reached": True},
            {"below": "99.95 %", "percent": "5 %", "reached": False},
        ],
        "credit": {"amount_minor": str(story.amount.minor), "currency": story.amount.currency},
        "near": "10 more full minutes of downtime would make it 25 % ($3,000.00).",
    }


def propose(run: Run, story: Story, *, reading: int = 1) -> Proposal:
    pieces = read(run, reading=reading, story=story)
    number = run.proposals.count() + 1
    identity = f"local/{story.tool}/{new_id()}"
    effect = {
        "account": "ACC-1093", "account_name": story.customer, "customer": "cus_1093", "invoice": story.invoice,
        "invoice_id": "in_2041", "invoice_version": story.invoice_version, "amount_minor": str(story.amount.minor),
        "balance_minor": "0", "currency": story.amount.currency, "reason": "sla_breach", "memo": story.memo,
        "ticket": "CS-8812", "incident": "INC-311",
    }  # fmt: skip
    action = Action(tool=story.tool, contract_version="1", effect=effect)
    now = clock.now()
    call = ModelCall.objects.create(
        run=run, reading=reading, provider="rules", model="support-large-2", view={"ticket": "CS-8812"},
        answer={"kind": "issue_credit", "amount_minor": str(story.amount.minor)}, started_at=now,
    )  # fmt: skip
    return Proposal.objects.create(
        run=run, number=number, step="credit", proposer=run.agent, model_call=call, tool=story.tool,
        contract_version="1", effect=action.effect, action_digest=action.digest(), identity=identity,
        business_key=f"credit/{run.id}", amount_minor=story.amount.minor, currency=story.amount.currency,
        reading=reading, rests_on=[str(piece.id) for piece in pieces[:3]], workings=workings(story),
        rationale=story.rationale,
    )  # fmt: skip


def rows(proposal: Proposal, story: Story, version: PolicyVersion) -> list[dict[str, str]]:
    return [
        {"key": "amount", "label": "Amount", "value": str(story.amount)},
        {"key": "account", "label": "Account", "value": f"ACC-1093, {story.customer}"},
        {"key": "invoice", "label": "Invoice", "value": f"{story.invoice} · v{story.invoice_version}"},
        {"key": "invoice_total", "label": "Invoice total", "value": "$12,000.00 USD"},
        {"key": "reason", "label": "Reason", "value": "SLA breach, incident INC-311"},
        {"key": "memo", "label": "Text on the invoice", "value": story.memo},
        {"key": "policy", "label": "Policy", "value": f"Service credits v{version.number}: {ASKS['text']}"},
        {"key": "identity", "label": "Identity", "value": proposal.identity},
    ]


def ask(
    story: Story | None = None,
    *,
    run: Run | None = None,
    supersedes: ApprovalRequest | None = None,
    minutes: int = 53,
    confirm: str = "click",
) -> ApprovalRequest:
    """An open request; with `supersedes` it replaces that one, which is closed as out of date."""
    from approvals.binding import binding_digest, page_digest

    story = story or Story()
    version = policy()
    run = run or run_of(story)
    proposal = propose(run, story, reading=run.proposals.count() + 1)
    if run.state == RunState.DECIDING:
        transitions.move(run=run, to=RunState.AUTHORISING, actor=principals.system())
        asked = {"waits_for": "support managers", "wake_at": None}
        transitions.move(run=run, to=RunState.AWAITING_APPROVAL, actor=principals.system(), **asked)
    page = rows(proposal, story, version)
    changes: list[dict[str, str]] = []
    now = clock.now()
    if supersedes is not None:
        if supersedes.state == RequestState.OPEN:
            close(supersedes, "supersede", "Invoice v2 → v3")
        pairs = zip(supersedes.page, page, strict=True)
        changes = [
            {"key": new["key"], "label": new["label"], "old": old["value"], "new": new["value"]}
            for old, new in pairs
            if old["value"] != new["value"] and new["key"] != "identity"
        ]
    facts = [
        (piece.kind, piece.locator, piece.version, piece.bound_digest)
        for piece in Evidence.objects.filter(id__in=proposal.rests_on)
    ]
    request = ApprovalRequest.objects.create(
        run=run, proposal=proposal, supersedes=supersedes, changes=changes,
        ask=f"Issue {story.amount.display()} service credit to {story.customer}"[:300],
        action_digest=proposal.action_digest,
        binding_digest=binding_digest(action_digest=proposal.action_digest, facts=facts), page=page,
        page_digest=page_digest(rows=page), policy_version=version, rules=[ASKS], group="manager", confirm=confirm,
        respond_by=now + dt.timedelta(minutes=minutes), valid_until=now + dt.timedelta(minutes=minutes + 60),
    )  # fmt: skip
    stages.one(request)
    record.append(run=run, kind="request.opened", actor=run.agent, request=str(request.id), ask=request.ask)
    return request


def close(request: ApprovalRequest, edge: str, reason: str = "") -> ApprovalRequest:
    getattr(request, edge)()
    request.closed_at, request.close_reason = clock.now(), reason
    request.save(update_fields=["state", "closed_at", "close_reason"])
    return request


def decide(request: ApprovalRequest, by: User, *, approved: bool = True, comment: str = "") -> Decision:
    """Vote and decision as the vote service leaves them."""
    now = clock.now()
    Vote.objects.create(
        request=request, stage=stages.one(request), principal=principals.of_user(user=by),
        choice="approve" if approved else "reject",
        comment=comment or ("" if approved else "Not ours"), page_digest=request.page_digest,
        binding_digest=request.binding_digest, authenticated_by="password", group=request.group, channel="page", at=now,
    )  # fmt: skip
    close(request, "approve" if approved else "reject")
    return Decision.objects.create(
        kind="people", approved=approved, proposal=request.proposal, request=request,
        policy_version=request.policy_version, rules=request.rules, binding_digest=request.binding_digest,
        decided_at=now, valid_until=request.valid_until, votes=stages.made_by(request, approved=approved),
    )  # fmt: skip


def operation(decision: Decision, *, to: str = "authorised", reference: str = "CN-5001") -> Operation:
    """The decision spent: an operation in one of authorised, sending, unknown, succeeded, failed."""
    proposal, now = decision.proposal, clock.now()
    made = Operation.objects.create(
        run=proposal.run, proposal=proposal, decision=decision, tool=proposal.tool, contract_version="1",
        system="billing", identity=proposal.identity, business_key=proposal.business_key, effect=proposal.effect,
        amount_minor=proposal.amount_minor, currency=proposal.currency,
    )  # fmt: skip
    if decision.request is not None and decision.request.state == RequestState.APPROVED:
        decision.request.spend()
        decision.request.save(update_fields=["state"])
    steps: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "authorised": [],
        "sending": [("send", {})],
        "unknown": [("send", {}), ("lose_track", {"unknown_since": now})],
        "succeeded": [("send", {}), ("succeed", {"settled_at": now, "external_reference": reference})],
        "failed": [("send", {}), ("fail", {"settled_at": now, "failure": "Billing refused it: the invoice is paid."})],
    }
    for edge, fields in steps[to]:
        getattr(made, edge)()
        for name, value in fields.items():
            setattr(made, name, value)
        made.save(update_fields=["state", *fields])
    return made
