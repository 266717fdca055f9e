"""What we sent beside what the other side has recorded, field by field. Pure.

A difference is only ever one that the connector itself found; what it did not compare is called so, and likeness is
never turned into certainty here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.money import Money, MoneyError

SAME, DIFFERS, NOT_COMPARED, MISSING = "same", "differs", "not compared", "missing"
# what their records call our fields, where a plain record shows it
THEIRS = {"amount_minor": ("amount_minor", "amount"), "invoice_id": ("invoice_id", "invoice")}
SHOWN_WITH_AMOUNT = "currency"
MONEY = ("amount_minor", "balance_minor")
# our fields and values in words, the same as where the action is approved; a field without a word shows its own name
LABELS = {
    "amount_minor": "Amount",
    "balance_minor": "Added to the customer’s balance",
    "account_name": "Name of the account",
    "customer": "Billed as",
    "invoice_id": "Billing’s own number",
    "memo": "Text on the invoice",
    "body": "Text",
}
VALUES = {("reason", "sla_breach"): "SLA breach"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`tell` is one of same, differs, not compared, missing; `amount` asks for the look of money."""

    label: str
    sent: str
    theirs: str
    tell: str
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One record of theirs that carries our identity, beside what was sent."""

    reference: str
    at: str
    rows: tuple[Row, ...]
    raw: dict[str, Any]

    @property
    def differs(self) -> bool:
        return any(row.tell in (DIFFERS, MISSING) for row in self.rows)

    @property
    def compared(self) -> list[Row]:
        return [row for row in self.rows if row.tell != NOT_COMPARED]

    @property
    def not_compared(self) -> list[Row]:
        return [row for row in self.rows if row.tell == NOT_COMPARED]


def label_of(key: str) -> str:
    return LABELS.get(key) or key.replace("_", " ").capitalize()


def _money(minor: str, currency: str) -> str:
    try:
        return str(Money(int(minor), currency))
    except (MoneyError, ValueError):
        return f"{minor} {currency}".strip()


def _shown(key: str, value: str, currency: str) -> str:
    return _money(value, currency) if key in MONEY and value else VALUES.get((key, value), value)


def _row(*, key: str, sent: str, currency: str, mismatch: Mapping[str, Any], raw: Mapping[str, Any]) -> Row:
    label, shown = label_of(key), _shown(key, sent, currency)
    if key in mismatch:
        theirs = str(list(mismatch[key])[-1])
        tell = DIFFERS if theirs else MISSING
        their_currency = str(list(mismatch.get("currency", ("", currency)))[-1]) or currency
        return Row(label=label, sent=shown, theirs=_shown(key, theirs, their_currency) or "not filled in", tell=tell)
    for name in THEIRS.get(key, (key,)):
        if name in raw and str(raw[name]).casefold() == sent.casefold():
            return Row(label=label, sent=shown, theirs=shown, tell=SAME)
    return Row(label=label, sent=shown, theirs="", tell=NOT_COMPARED)


def _found(*, effect: Mapping[str, Any], identity: str, record: Mapping[str, Any]) -> Found:
    currency = str(effect.get("currency", ""))
    mismatch, raw = dict(record.get("mismatch") or {}), dict(record.get("raw") or {})
    rows = [
        _row(key=key, sent=str(value), currency=currency, mismatch=mismatch, raw=raw)
        for key, value in effect.items()
        if key != SHOWN_WITH_AMOUNT or key in mismatch or "amount_minor" not in effect
    ]
    theirs = str(record.get("identity", ""))
    tell = SAME if theirs == identity else DIFFERS if theirs else MISSING
    rows.insert(0, Row(label="Identity", sent=identity, theirs=theirs or "not filled in", tell=tell, code=True))
    for key in mismatch.keys() - effect.keys() - {"identity"}:
        wanted, real = [*map(str, mismatch[key]), "", ""][:2]
        rows.append(Row(label=label_of(key), sent=wanted, theirs=real or "not filled in", tell=DIFFERS))
    ordered = sorted(rows, key=lambda row: (row.tell == NOT_COMPARED, row.label != "Amount"))
    at = str(record.get("at", ""))
    return Found(reference=str(record.get("reference", "")), at=at, rows=tuple(ordered), raw=raw)


def compare(*, effect: Mapping[str, Any], identity: str, observed: Mapping[str, Any]) -> list[Found]:
    """`observed` is what a lookup brought (an observation's `raw`); one entry for each record with our identity."""
    records = observed.get("records")
    if not isinstance(records, list):
        return []
    return [_found(effect=effect, identity=identity, record=one) for one in records if isinstance(one, dict)]


def sent_only(*, effect: Mapping[str, Any], identity: str) -> list[Row]:
    """The left pane alone, when the other side has shown no record."""
    currency = str(effect.get("currency", ""))
    rows = [Row(label="Identity", sent=identity, theirs="", tell=NOT_COMPARED, code=True)]
    for key, value in effect.items():
        if key != SHOWN_WITH_AMOUNT or "amount_minor" not in effect:
            sent = _shown(key, str(value), currency)
            rows.append(Row(label=label_of(key), sent=sent, theirs="", tell=NOT_COMPARED))
    return sorted(rows, key=lambda row: row.label != "Amount")


def in_words(*, mismatch: Mapping[str, tuple[str, str]], currency: str) -> str:
    """What differs, for people: `Amount: sent $1,200.00 USD, recorded $1,000.00 USD`."""
    told = (
        f"{label_of(key)}: sent {_shown(key, sent, currency)}, recorded {_shown(key, real, currency) or 'nothing'}"
        for key, (sent, real) in mismatch.items()
    )
    return "; ".join(told)
