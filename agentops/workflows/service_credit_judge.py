"""Whether an agent's proposed credit is what the facts give. Nothing is taken over from it or put right for it: a
figure that differs is refused, with the source it should have come from. Pure."""

from typing import Any

from pydantic import ValidationError

from agentops.workflows.base import Draft, Facts, HandOver, Refused
from agentops.workflows.service_credit_choices import IssueCredit
from agentops.workflows.service_credit_facts import NAMES, missing, workings
from runs.actions import Action
from runs.money import Money
from runs.sla import SlaError, Workings
from runs.tools.billing.contract import CREATE_CREDIT, CreditEffect

RESTS_ON = ("account", "sla", "incident", "invoice")


def judge_credit(*, choice: IssueCredit, ticket: str, facts: Facts) -> Draft | Refused | HandOver:
    """A draft when the proposal is what the facts give, and otherwise why it is not."""
    absent = missing(facts)
    if absent:
        names = ", ".join(NAMES[kind] for kind in absent)
        return Refused(code="facts_missing", reason=f"There is no {names}: ask for the document.")
    refused = _wrong_subject(choice, facts) or _not_eligible(facts)
    if refused:
        return refused
    try:
        owed = workings(facts)
    except SlaError as error:
        return Refused(code=error.code, reason=f"{error} Ask for the document or escalate; propose no credit.")
    return _wrong_figures(choice, facts, owed) or _no_room(facts, owed) or _draft(choice, ticket, facts, owed)


def credit_objection(*, facts: Facts, identity: str) -> str:
    """What speaks against a credit on these facts, whatever was judged on earlier ones; empty when nothing does. A
    credit with this `identity` is the one that is being made, and does not speak against itself."""
    if missing(facts):
        return "a document that the credit rests on can no longer be read"
    try:
        refused = _not_eligible(facts, but=identity) or _no_room(facts, workings(facts), but=identity)
    except SlaError as error:
        return str(error)
    return refused.reason if refused else ""


def another_amount(*, action: Action, money: Money, facts: Facts) -> Draft | Refused:
    """The credit that is asked about at another amount: never more than the facts give."""
    absent = missing(facts)
    if absent:
        return Refused(
            code="facts_missing", reason=f"There is no {', '.join(NAMES[kind] for kind in absent)} any more."
        )
    try:
        owed = workings(facts)
        refused = _not_eligible(facts) or _no_room(facts, owed)
    except SlaError as error:
        return Refused(code=error.code, reason=str(error))
    if refused is not None:
        return refused
    if money.minor > owed.credit.minor:
        why = f"The facts give {owed.credit} and no more; propose less, or have the facts put right."
        return Refused(code="amount_differs", reason=why)
    balance = max(0, money.minor - int(facts["invoice"].content["remaining_minor"]))
    effect = {**action.effect, "amount_minor": str(money.minor), "balance_minor": str(balance)}
    shown = owed.as_dict()
    chosen = {"key": "proposed", "label": "Proposed by a person instead", "detail": "", "system": str(money)}
    shown["steps"] = [*shown["steps"], chosen]
    return Draft(
        step="credit", action=Action(action.tool, action.contract_version, effect), rests_on=RESTS_ON, workings=shown
    )


def _wrong_subject(choice: IssueCredit, facts: Facts) -> Refused | None:
    for name, kind in (("invoice", "invoice"), ("incident", "incident")):
        given = getattr(choice, name)
        if given != facts[kind].locator:
            return Refused(
                code=f"{name}_differs",
                reason=f"{name} is {given!r}, but this ticket is about {name} {facts[kind].locator}, as read from "
                f"{facts[kind].source}. Propose for that one or escalate.",
            )
    return None


def _given(facts: Facts) -> list[dict[str, str]]:
    """The credits in force on the invoice."""
    credits = facts["credits"].content["credits"] if "credits" in facts else []
    return [item for item in credits if item["status"] != "void"]


def _not_eligible(facts: Facts, but: str = "") -> Refused | None:
    account, incident, invoice = (facts[kind].content for kind in ("account", "incident", "invoice"))
    if account["standing"] != "good":
        why = f"The account's standing is {account['standing']!r}; only an account in good standing gets a credit."
        return Refused(code="account_standing", reason=f"{why} Escalate.")
    if account["id"] not in incident["affected"]:
        why = f"Incident {incident['id']} does not list account {account['id']} as affected."
        return Refused(code="not_affected", reason=f"{why} Escalate.")
    if invoice["customer"] != account["customer"]:
        return Refused(code="invoice_of_another", reason="The invoice belongs to another customer. Escalate.")
    if invoice["status"] not in ("open", "paid"):
        why = f"Invoice {invoice['number']} is {invoice['status']} and cannot be credited."
        return Refused(code="invoice_not_creditable", reason=f"{why} Escalate.")
    others = [item for item in _given(facts) if not but or item["identity"] != but]
    given = [item["reference"] for item in others if item["incident"] == incident["id"]]
    if given:
        why = f"Billing has a credit for incident {incident['id']} on this invoice already: {', '.join(given[:5])}."
        return Refused(code="already_credited", reason=f"{why} Escalate.")
    return None


def _wrong_figures(choice: IssueCredit, facts: Facts, owed: Workings) -> Refused | None:
    invoice = f"invoice {facts['invoice'].locator} at version {facts['invoice'].version}"
    if choice.currency != owed.credit.currency:
        why = f"currency is {choice.currency}, but {invoice} is not in that currency; take it from there."
        return Refused(code="currency_differs", reason=why)
    if choice.amount_minor != str(owed.credit.minor):
        why = (
            f"amount_minor is {choice.amount_minor}, which is not what the facts give. Work it out again: the downtime "
            f"from incident {facts['incident'].locator} at version {facts['incident'].version} in full minutes, the "
            f"percentage from SLA schedule {facts['sla'].version} of plan {facts['sla'].locator}, the total from "
            f"{invoice}; round half up to the smallest unit of {owed.credit.currency}."
        )
        return Refused(code="amount_differs", reason=why)
    return None


def _no_room(facts: Facts, owed: Workings, but: str = "") -> Refused | None:
    invoice = facts["invoice"].content
    own = sum(int(item["amount_minor"]) for item in _given(facts) if but and item["identity"] == but)
    if max(0, int(invoice["credited_minor"]) - own) + owed.credit.minor > owed.total.minor:
        why = f"Credits on invoice {invoice['number']} leave less than {owed.credit.display()} of it. Escalate."
        return Refused(code="exceeds_creditable", reason=why)
    return None


def _draft(choice: IssueCredit, ticket: str, facts: Facts, owed: Workings) -> Draft | HandOver:
    account, incident, invoice = (facts[kind].content for kind in ("account", "incident", "invoice"))
    # what is left to pay takes the credit first; beyond it billing raises the customer's balance
    balance = max(0, owed.credit.minor - int(invoice["remaining_minor"]))
    day = owed.outage.start
    effect = {
        "account": account["id"],
        "account_name": account["name"],
        "customer": account["customer"],
        "invoice": invoice["number"],
        "invoice_id": invoice["id"],
        "invoice_version": invoice["version"],
        "amount_minor": str(owed.credit.minor),
        "balance_minor": str(balance),
        "currency": owed.credit.currency,
        "reason": "sla_breach",
        "memo": f"SLA credit, outage {day.day} {day:%b %Y} ({incident['id']})",
        "ticket": ticket,
        "incident": incident["id"],
    }
    try:
        CreditEffect.model_validate(effect)
    except ValidationError as error:
        fields = ", ".join(str(problem["loc"][0]) for problem in error.errors())
        return HandOver(code="facts_unusable", reason=f"Billing cannot be sent what was read for: {fields}.")
    return Draft(
        step="credit",
        action=Action(CREATE_CREDIT.name, CREATE_CREDIT.version, effect),
        rests_on=RESTS_ON,
        workings=compared(owed=owed, choice=choice),
        rationale=choice.rationale,
    )


def compared(*, owed: Workings, choice: IssueCredit) -> dict[str, Any]:
    """The system's workings with the agent's figures beside them: each step has `agent` and `comparison` (same,
    differs, or empty where the agent gave no figure), and `agrees` says whether none differs."""
    shown = owed.as_dict()
    figures = {
        "downtime": f"{choice.downtime_minutes:,} min",
        "credit": str(owed.credit) if choice.amount_minor == str(owed.credit.minor) else choice.amount_minor,
    }
    for step in shown["steps"]:
        step["agent"] = figures.get(step["key"], "")
        step["comparison"] = "" if not step["agent"] else "same" if step["agent"] == step["system"] else "differs"
    shown["agrees"] = all(step["comparison"] != "differs" for step in shown["steps"])
    return shown
