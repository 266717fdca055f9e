"""Playing one case with the billing answer lost, and telling what caused what, from the database and the ledger."""

import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from agentops.demo.sandbox_client import SandboxClient
from agentops.starting import start_workflow
from approvals.models import ApprovalRequest, Decision
from approvals.services import votes
from reconciliation.models import Operation
from runs.models import Evidence, ModelCall, Principal, Proposal, Run
from runs.money import Money
from runs.services import principals

CREDIT = "billing.credit_notes.create"
PATIENCE_SECONDS = 90


def say(text: str = "") -> None:
    print(text, flush=True)


def play(*, ticket: str, world: dict[str, Any] | None, expected_minor: int) -> int:
    """Run the case to its end, approving as the demo manager; returns the exit status. `expected_minor` 0 takes the
    amount from the approved proposal."""
    sandbox = SandboxClient(url=settings.SANDBOX_URL)
    if world is not None:
        sandbox.post("world", world)
    sandbox.post("faults", {"mode": "execute_and_timeout", "operation": CREDIT, "times": 1})
    desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
    run = start_workflow(name="service_credit", data={"ticket": ticket}, initiator=desk).run
    say(f"\nTicket {ticket} comes in; billing will make the first credit and lose the answer.\n")
    _watch(run)
    _tell(run)
    ledger = [row for row in sandbox.get("ledger")["data"] if row["operation"] == CREDIT]
    return _judge(run, ledger, expected_minor)


def _watch(run: Run) -> None:
    """Print each change of state as it happens, and answer the request for approval when there is one."""
    shown, deadline = "", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        run.refresh_from_db()
        if run.state != shown:
            shown = run.state
            note = f", waiting for {run.waits_for}" if run.waits_for else ""
            say(f"  {time.strftime('%H:%M:%S')}  {run.get_state_display()}{note}")
        if run.state == "awaiting_approval":
            _approve(run)
        if run.is_over or run.state == "needs_person":
            return
        time.sleep(0.1)
    say(f"  still {run.get_state_display()} after {PATIENCE_SECONDS} s; giving up watching")


def _approve(run: Run) -> None:
    request = ApprovalRequest.objects.filter(run=run, state="open").order_by("-created_at").first()
    if request is None:
        return
    say(f"            asked: {request.ask}")
    result = votes.cast(
        request_id=request.pk,
        user=User.objects.get(username="maya"),
        choice="approve",
        comment="",
        page_digest=request.page_digest,
        acknowledged=True,
        authenticated_by="demo command",
        channel="command",
    )
    say(f"            Maya Lindgren approves: {result.code}")


def _tell(run: Run) -> None:
    """The causal story, each line from its own record."""
    say("\nWhat caused what")
    for one in Evidence.objects.filter(run=run, reading=1).order_by("kind"):
        weight = "authoritative" if one.authoritative else "not authoritative"
        say(f"  evidence   {one.title} (version {one.version}, {weight}): {one.summary}"[:160])
    for call in ModelCall.objects.filter(run=run).order_by("finished_at"):
        kind = (call.answer or {}).get("kind", "nothing")
        say(f"  agent      {call.model} chose {kind}" + (f"; refused: {call.refusal}" if call.refusal else ""))
    for proposal in Proposal.objects.filter(run=run).order_by("number"):
        _tell_proposal(proposal)
    say(f"\n  run        {run.get_state_display()}: {run.outcome or run.person_reason}")


def _tell_proposal(proposal: Proposal) -> None:
    money = f" {Money(proposal.amount_minor, proposal.currency)}" if proposal.amount_minor else ""
    say(f"\n  proposal   {proposal.number}: {proposal.tool}{money}, identity {proposal.identity}")
    for decision in Decision.objects.filter(proposal=proposal).select_related("policy_version__policy", "request"):
        rules = "; ".join(rule["text"] for rule in decision.rules)
        say(f"  rule       {decision.policy_version}: {rules}")
        if decision.standing is not None:
            say(f"  decision   approved beforehand by {decision.standing.by} ({decision.standing.short})")
        elif decision.request is None:
            say("  decision   automatic, no person looked")
        for vote in decision.request.votes.select_related("principal") if decision.request else []:
            say(f"  decision   {vote.choice} by {vote.principal} at {vote.at:%H:%M:%S} ({vote.authenticated_by})")
    operation = Operation.objects.filter(proposal=proposal).first()
    if operation is None:
        say("  operation  none: nothing was sent")
        return
    for attempt in operation.attempts.order_by("number"):
        say(
            f"  attempt    {attempt.number}, key {attempt.wire_key}: {attempt.get_result_display()}; {attempt.detail}"[
                :200
            ]
        )
    for probe in operation.observations.filter(source="probe").order_by("at"):
        say(f"  probe      {probe.at:%H:%M:%S}: {probe.summary}")
    say(f"  settled    {operation.get_state_display()} by {operation.settled_by}: {operation.external_reference}")


def _judge(run: Run, ledger: list[dict[str, Any]], expected_minor: int) -> int:
    """The sandbox's ledger decides."""
    say("\nBilling's ledger of effects")
    for row in ledger:
        say(
            f"  {row['at']}  credit of {row['amount_minor']} {row['currency'].upper()} (minor units), {row['identity']}"
        )
    if not ledger:
        say("  (nothing)")
    proposal = Proposal.objects.filter(run=run, tool="billing.create_credit").order_by("-number").first()
    wanted = expected_minor or (proposal.amount_minor if proposal else None)
    good = (
        run.state == "completed"
        and proposal is not None
        and len(ledger) == 1
        and ledger[0]["amount_minor"] == wanted
        and ledger[0]["identity"] == proposal.identity
    )
    say(
        f"\nExactly one credit of {wanted} minor units, and the run completed."
        if good
        else f"\nNot as it should be: the run is {run.get_state_display()!r} and billing made {len(ledger)} credits."
    )
    return 0 if good else 1
