"""What `billing.create_credit` promises."""

import datetime as dt
from typing import Annotated, Literal

from pydantic import StringConstraints

from runs.money import CurrencyText, MinorText, Money, Strict, parse_minor
from runs.tools.base import Contract, Repeat

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
)
