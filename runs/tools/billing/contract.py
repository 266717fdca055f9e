"""What `billing.create_credit` promises, and `billing.void_credit`, which undoes it."""

import datetime as dt
from typing import Annotated, Literal

from pydantic import StringConstraints

from runs.money import CurrencyText, MinorText, Money, Strict, parse_minor
from runs.tools.base import CannotReverse, Compensation, Contract, ForwardOnly, Made, Repeat

Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Memo = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Minor = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,14})$")]


class CreditEffect(Strict):
    """All text. `amount_minor` is in the currency's smallest unit; `balance_minor` is the part of it that goes to the
    customer's balance because nothing is left to pay on the invoice ("0" when all is set against the invoice)."""

    account: Text
    account_name: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    customer: Text  # billing's id of the account
    invoice: Text  # the number people know: that of the first of its chain of revisions
    invoice_id: Text  # the revision that is credited
    invoice_version: Text
    amount_minor: MinorText
    balance_minor: Minor
    currency: CurrencyText
    reason: Literal["sla_breach"]
    memo: Memo
    ticket: Id
    incident: Id


def _business_key(effect: dict[str, str]) -> str:
    return f"credit/{effect['account']}/{effect['incident']}"


def _money(effect: dict[str, str]) -> Money:
    return parse_minor(text=effect["amount_minor"], currency=effect["currency"])


class VoidEffect(Strict):
    """All text. The credit note as billing showed it, so that another one, or another amount, is another action."""

    reverses: Text  # the identity of the operation that made it
    credit_note: Text  # the number people know it by
    credit_note_id: Id
    account: Text
    account_name: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    customer: Text
    invoice: Text
    invoice_id: Text  # the revision that was credited
    amount_minor: MinorText
    currency: CurrencyText
    ticket: Id
    incident: Id


_CARRIED_OVER = ("account", "account_name", "customer", "invoice", "invoice_id", "currency", "ticket", "incident")


def _void(made: Made) -> dict[str, str]:
    note = made.record
    if not note.get("id"):
        raise CannotReverse("Billing has never shown the credit note itself, so it is not known which one to void.")
    if made.minor is None:
        raise CannotReverse("It is not known at what amount billing has recorded it.")
    return {
        **{name: made.effect[name] for name in _CARRIED_OVER},
        "reverses": made.identity,
        "credit_note": made.reference,
        "credit_note_id": str(note["id"]),
        "amount_minor": str(made.minor),
    }


VOID_CREDIT = Contract(
    name="billing.void_credit",
    version="1",
    system="billing",
    title="Void credit",
    effect=VoidEffect,
    repeat=Repeat.BY_IDENTITY,
    retention=dt.timedelta(hours=24),
    settling=dt.timedelta(seconds=5),
    call_limit=dt.timedelta(seconds=10),
    lookup_is_conclusive=True,
    precondition=(
        "The credit note and its invoice are read again just before. Billing itself voids a credit note once only, and "
        "only while the invoice is open."
    ),
    undo="No: a voided credit note stays void. A new credit would be a new action with its own approval.",
    touches="Takes the credit back: what the customer owes on the invoice rises by it again.",
    business_key=lambda effect: f"void/{effect['credit_note_id']}",
    money=_money,
    resources=lambda effect: (f"account {effect['account']}",),
    reversal=ForwardOnly(why="A voided credit note stays void; a new credit is a new action."),
    only_reverses=True,
)

CREATE_CREDIT = Contract(
    name="billing.create_credit",
    version="1",
    system="billing",
    title="Create credit",
    effect=CreditEffect,
    repeat=Repeat.BY_IDENTITY,
    retention=dt.timedelta(hours=24),
    settling=dt.timedelta(seconds=5),
    call_limit=dt.timedelta(seconds=10),
    lookup_is_conclusive=True,
    final_within=dt.timedelta(days=3),
    precondition=(
        "The invoice is read again just before. Billing itself refuses a credit on a replaced or voided invoice, or of "
        "more than is left of it; it takes no version."
    ),
    undo="Yes, until the invoice is paid: by voiding the credit note, a new request with its own approval.",
    touches="Lowers what the customer owes on the invoice; on a paid invoice it raises the customer's balance.",
    business_key=_business_key,
    money=_money,
    resources=lambda effect: (f"account {effect['account']}",),
    reversal=Compensation(tool=VOID_CREDIT.name, effect=_void),
)
