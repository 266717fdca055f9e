"""Service credit: a customer asks for compensation; the SLA, the incident and the invoice say what is owed.

The agent proposes; the amount is worked out here and compared. After the credit the ticket is updated and a reply is
drafted, by the workflow itself.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar

from pydantic import StringConstraints

from agentops.workflows.base import (
    AskAgent,
    Card,
    Complete,
    Done,
    Draft,
    Facts,
    Grant,
    HandOver,
    Recovery,
    Refused,
    Subject,
)
from agentops.workflows.service_credit_cards import credit_card, reply_card, ticket_card
from agentops.workflows.service_credit_choices import AskForDocument, Escalate, IssueCredit
from agentops.workflows.service_credit_facts import FactsUnusable, started
from agentops.workflows.service_credit_judge import another_amount, credit_objection, judge_credit
from agentops.workflows.service_credit_view import build_view
from runs.actions import Action
from runs.money import Money, Strict, parse_minor
from runs.texts import quoted
from runs.tools.base import NoSuchThing, Reading
from runs.tools.billing.contract import CREATE_CREDIT
from runs.tools.billing.sources import read_credits, read_invoice
from runs.tools.helpdesk.contract import DRAFT_REPLY, UPDATE_TICKET
from runs.tools.helpdesk.sources import read_account, read_incident, read_sla, read_ticket
from runs.tools.registry import connection

__all__ = ["AskForDocument", "Escalate", "IssueCredit", "ServiceCredit", "ServiceCreditInput"]

STEPS = {
    "billing.create_credit": "credit",
    "helpdesk.update_ticket": "update_ticket",
    "helpdesk.draft_reply": "draft_reply",
}


GRANTED_FOR = dt.timedelta(days=30)
_EVIDENCE = "An admin settled it by evidence; billing did not confirm it by itself. "


class ServiceCreditInput(Strict):
    ticket: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9]{0,9}-[0-9]{1,12}$")]


class ServiceCredit:
    """See `agentops.workflows.base.Workflow`."""

    name: ClassVar[str] = "service_credit"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Service credit"
    tools: ClassVar[tuple[str, ...]] = tuple(STEPS)
    Input: ClassVar[type[Strict]] = ServiceCreditInput
    choices: ClassVar[tuple[type[Strict], ...]] = (IssueCredit, AskForDocument, Escalate)
    events: ClassVar[Mapping[str, type[Strict]]] = {}
    asks_again_when_rejected: ClassVar[bool] = False
    recovery: ClassVar[Recovery] = "forward"

    def subject(self, *, data: dict[str, Any]) -> Subject:
        """See Workflow."""
        return Subject(title=f"Service credit for ticket {data['ticket']}", subject=data["ticket"])

    def start_key(self, *, data: dict[str, Any]) -> str:
        """One run a ticket."""
        return f"{self.name}/{data['ticket']}"

    def grants(self, *, data: dict[str, Any]) -> Mapping[str, Grant]:
        """Its own ticket and no other, for a month."""
        return {tool: Grant(only={"ticket": (data["ticket"],)}, within=GRANTED_FOR) for tool in self.tools}

    def gather(self, *, data: dict[str, Any]) -> list[Reading]:
        """Ticket, account, SLA, incident, invoice and credits, in this order. An SLA, incident or invoice that does
        not exist is left out, for the agent to ask for; without ticket or account there is no run."""
        desk, billing = connection("helpdesk"), connection("billing")
        ticket = read_ticket(connection=desk, ticket=data["ticket"])
        account = read_account(connection=desk, account=ticket.content["account"])
        found = [ticket, account]
        # what does not exist is left out, and the view names it
        with suppress(NoSuchThing):
            found.append(read_sla(connection=desk, plan=account.content["plan"]))
        with suppress(NoSuchThing, FactsUnusable):
            incident = read_incident(connection=desk, incident=ticket.content["incident"])
            found.append(incident)
            customer, at = account.content["customer"], started(incident.content)
            invoice = read_invoice(connection=billing, customer=customer, at=at)
            found += [invoice, read_credits(connection=billing, invoice=invoice)]
        return found

    def customer(self, *, facts: Facts) -> str:
        """The account's name."""
        return str(facts["account"].content["name"]) if "account" in facts else ""

    def view(self, *, data: dict[str, Any], facts: Facts, refusals: Sequence[str]) -> dict[str, Any]:
        """See Workflow."""
        return build_view(ticket=data["ticket"], facts=facts, refusals=refusals)

    def judge(self, *, choice: Strict, data: dict[str, Any], facts: Facts) -> Draft | Refused | HandOver | Complete:
        """See Workflow."""
        match choice:
            case IssueCredit():
                return judge_credit(choice=choice, ticket=data["ticket"], facts=facts)
            case AskForDocument():
                return HandOver(code="document_needed", reason=says(f"I need {choice.document}. {choice.rationale}"))
            case Escalate():
                return HandOver(code="escalated", reason=says(choice.rationale))
            case _:
                return Refused(code="not_a_choice", reason=f"{type(choice).__name__} is not one of the choices here.")

    def follow(
        self, *, data: dict[str, Any], facts: Facts, done: Sequence[Done]
    ) -> Draft | AskAgent | HandOver | Complete:
        """The credit is the agent's; the ticket and the reply follow from it."""
        by_step = {item.step: item for item in done}
        credit = by_step.get("credit")
        if credit is None:
            return AskAgent()
        if "update_ticket" not in by_step:
            return _ticket_draft(credit, facts)
        if "draft_reply" not in by_step:
            return _reply_draft(credit)
        amount = _amount(credit).display()
        whom = credit.effect["account_name"]
        known = "settled by an admin's evidence" if credit.by_evidence else "confirmed by billing"
        return Complete(f"Credit {credit.reference} of {amount} for {whom} {known}; ticket updated; reply drafted")

    def objection(self, *, action: Action, facts: Facts, identity: str) -> str:
        """Somebody may have given a credit for the incident meanwhile, by hand or through another ticket."""
        return credit_objection(facts=facts, identity=identity) if action.tool == CREATE_CREDIT.name else ""

    def another_amount(self, *, action: Action, money: Money, facts: Facts) -> Draft | Refused:
        """See TakesAnotherAmount: credits only; a ticket's change has no amount."""
        if action.tool != CREATE_CREDIT.name:
            return Refused(code="no_amount", reason="This has no amount.")
        return another_amount(action=action, money=money, facts=facts)

    def variables(self, *, action: Action, facts: Facts) -> dict[str, Any]:
        """What is not known is left out, and a rule that needs it then denies."""
        effect = action.effect
        found: dict[str, Any] = {
            "tool": action.tool,
            "workflow": self.name,
            "step": STEPS[action.tool],
            "ticket": effect["ticket"],
        }
        for name in ("account", "incident", "currency", "reason"):
            if name in effect:
                found[name] = effect[name]
        if "amount_minor" in effect:
            found["amount_minor"] = int(effect["amount_minor"])
        if "account" in facts:
            found["account"] = facts["account"].content["id"]
            found["account_standing"] = facts["account"].content["standing"]
        if "incident" in facts:
            found["incident_final"] = facts["incident"].content["final"] is True
        if "invoice" in facts:
            found["invoice_status"] = facts["invoice"].content["status"]
            found["month"] = facts["invoice"].content["period_start"][:7]
        return found

    def card(self, *, action: Action, facts: Facts) -> Card:
        """See Workflow."""
        if action.tool == UPDATE_TICKET.name:
            return ticket_card(action=action)
        if action.tool == DRAFT_REPLY.name:
            return reply_card(action=action)
        return credit_card(action=action, facts=facts)


def _amount(credit: Done) -> Money:
    """What was really credited."""
    return parse_minor(text=str(credit.real_minor), currency=credit.effect["currency"])


def _ticket_draft(credit: Done, facts: Facts) -> Draft | HandOver:
    effect = credit.effect
    if "ticket" not in facts:
        return HandOver(code="ticket_gone", reason=f"Ticket {effect['ticket']} can no longer be read.")
    note = (
        f"Service credit {credit.reference} of {_amount(credit)} on invoice {effect['invoice']} "
        f"for incident {effect['incident']}. {_EVIDENCE if credit.by_evidence else ''}"
        "A reply is being drafted: read it and send it."
    )
    change = {
        "ticket": effect["ticket"],
        "ticket_version": facts["ticket"].version,
        "status": "pending",
        "resolution": note,
    }
    action = Action(UPDATE_TICKET.name, UPDATE_TICKET.version, change)
    return Draft(step="update_ticket", action=action, rests_on=("ticket",))


def _reply_draft(credit: Done) -> Draft:
    effect = credit.effect
    where = f"It is set against invoice {effect['invoice']}."
    if effect["balance_minor"] != "0":
        where = f"Invoice {effect['invoice']} is paid, so what was over is kept on your balance for the next invoice."
    body = (
        f"Hello,\n\nwe have credited {_amount(credit)} to {effect['account_name']} for the "
        f"service disruption {effect['incident']}, as your service level agreement provides. {where} "
        f"The credit's number is {credit.reference}.\n\nWe are sorry for the disruption.\n\nKind regards"
    )
    # one reply a credit: where one was reversed and is made anew, the customer hears of the other one as well
    subject = f"Service credit {credit.reference} for {effect['incident']}"[:150]
    reply = {"ticket": effect["ticket"], "subject": subject, "body": body}
    return Draft(step="draft_reply", action=Action(DRAFT_REPLY.name, DRAFT_REPLY.version, reply), rests_on=())


def says(words: str) -> str:
    """The model's own words as a reason: nobody may take them for the product's."""
    return f"the agent says: {quoted(text=words, limit=2300)}"
