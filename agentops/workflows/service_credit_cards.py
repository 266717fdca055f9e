"""How the actions of a service credit run are put to people. Reads nothing."""

from agentops.workflows.base import Card, Facts, Row
from runs.actions import Action
from runs.money import Money, parse_minor
from runs.tools.billing.sources import amount_text

REASONS = {"sla_breach": "SLA breach"}


def credit_card(*, action: Action, facts: Facts) -> Card:
    """Everything the effect says, in rows; what the facts add is the invoice's total and the account's standing."""
    effect = action.effect
    amount = parse_minor(text=effect["amount_minor"], currency=effect["currency"])
    lead, applied = _where(effect, amount)
    rows = (
        Row(key="amount", label="Amount", value=str(amount)),
        Row(key="account", label="Account", value=_account(effect, facts)),
        Row(key="customer", label="Billed as", value=effect["customer"]),
        Row(key="invoice", label="Invoice", value=f"{effect['invoice']} (version {effect['invoice_version']})"),
        Row(key="invoice_total", label="Invoice total", value=_total(facts)),
        Row(key="invoice_id", label="Billing’s own number", value=effect["invoice_id"]),
        Row(key="applied", label="Set against", value=applied),
        Row(key="reason", label="Reason", value=f"{REASONS[effect['reason']]}, incident {effect['incident']}"),
        Row(key="memo", label="Text on the invoice", value=effect["memo"]),
        Row(key="ticket", label="Ticket", value=effect["ticket"]),
    )
    ask = f"Issue {amount.display()} service credit to {effect['account_name']}"
    return Card(ask=ask, lead=lead, rows=rows)


def _where(effect: dict[str, str], amount: Money) -> tuple[str, str]:
    """What happens, in a sentence, and where the credit goes, in a few words."""
    whom, invoice = effect["account_name"], f"invoice {effect['invoice']}"
    start = f"Billing creates one credit of {amount.display()} for {whom}"
    if effect["balance_minor"] == "0":
        return f"{start} and sets it against {invoice}. No money leaves the bank.", invoice
    balance = parse_minor(text=effect["balance_minor"], currency=effect["currency"])
    if balance == amount:
        end = f"on paid {invoice} and adds it to the customer’s balance, for the next invoice."
        return f"{start} {end} No money leaves the bank.", "the customer’s balance"
    rest = Money(amount.minor - balance.minor, amount.currency)
    end = f"sets {rest.display()} of it against {invoice} and adds {balance.display()} to the customer’s balance."
    applied = f"{invoice}: {rest.display()}, the customer’s balance: {balance.display()}"
    return f"{start}, {end} No money leaves the bank.", applied


def _account(effect: dict[str, str], facts: Facts) -> str:
    text = f"{effect['account_name']} ({effect['account']})"
    if "account" not in facts:
        return text
    content = facts["account"].content
    plan = facts["sla"].content["name"] if "sla" in facts else content["plan"]
    return f"{text}, {plan} plan, standing: {content['standing']}"


def _total(facts: Facts) -> str:
    if "invoice" not in facts:
        return "not known"
    content = facts["invoice"].content
    return amount_text(minor=content["total_minor"], currency=content["currency"])


def ticket_card(*, action: Action) -> Card:
    """The change of a ticket."""
    effect = action.effect
    rows = (
        Row(key="ticket", label="Ticket", value=f"{effect['ticket']} (version {effect['ticket_version']})"),
        Row(key="status", label="Status", value=effect["status"]),
        Row(key="resolution", label="Resolution", value=effect["resolution"]),
    )
    lead = f"The help desk sets ticket {effect['ticket']} to {effect['status']}. The customer is told nothing."
    return Card(ask=f"Set ticket {effect['ticket']} to {effect['status']}", lead=lead, rows=rows)


def reply_card(*, action: Action) -> Card:
    """The draft of a reply."""
    effect = action.effect
    rows = (
        Row(key="ticket", label="Ticket", value=effect["ticket"]),
        Row(key="subject", label="Subject", value=effect["subject"]),
        Row(key="body", label="Text", value=effect["body"]),
    )
    lead = (
        f"The help desk keeps a draft on ticket {effect['ticket']}. A person reads and sends it; nothing is sent now."
    )
    return Card(ask=f"Draft a reply on ticket {effect['ticket']}", lead=lead, rows=rows)
