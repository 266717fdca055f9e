"""A case that a person writes into a JSON file: one customer, one outage, one invoice, one ticket."""

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictStr, ValidationError, model_validator

from agentops.demo.world import BUSINESS
from runs.money import CurrencyText, MoneyError, Strict, parse_amount

MAX_BYTES = 100_000
Text = Annotated[StrictStr, Field(min_length=1, max_length=200)]


def _shaped(pattern: str, hint: str) -> AfterValidator:
    """A text of that shape, refused with an example instead of the pattern."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(hint)
        return value

    return AfterValidator(check)


def _exists(value: str) -> str:
    try:
        dt.datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a day and time that exists") from None
    return value


Number = Annotated[StrictStr, _shaped(r"[A-Z]{2,4}-[0-9]{1,8}", "write letters and a number, as CS-9001")]
Moment = Annotated[
    StrictStr,
    _shaped(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "write it in UTC as 2026-09-17T08:10:00Z"),
    AfterValidator(_exists),
]
Percent = Annotated[StrictStr, _shaped(r"\d{1,3}(\.\d{1,4})?", "write a percentage as text: 99.95")]


class BadCase(Exception):
    """The file is not a case; the message names the field and what belongs there."""


class Tier(Strict):
    below: Percent
    percent: Percent


class CaseFile(Strict):
    """All texts; `total` is the invoice's in major units ("12000.00"), times are UTC with a Z. The invoice is for the
    month in which the outage began. `tiers` is the SLA (credit `percent` when uptime is `below`), else the demo's."""

    customer: Text
    ticket: Number
    account: Number
    incident: Number
    invoice: Number
    total: StrictStr
    currency: CurrencyText
    outage_began: Moment
    outage_ended: Moment
    subject: Text = "Outage"
    text: Annotated[StrictStr, Field(max_length=20_000)] = "We had an outage and ask for the credit we are due."
    tiers: list[Tier] | None = None

    @model_validator(mode="after")
    def _sensible(self) -> "CaseFile":
        try:
            parse_amount(text=self.total, currency=self.currency)
        except MoneyError as problem:
            raise ValueError(f"total {problem}") from None
        if self.outage_ended <= self.outage_began:
            raise ValueError("outage_ended must be later than outage_began")
        for tier in self.tiers or []:
            if Decimal(tier.below) > 100 or Decimal(tier.percent) > 100:
                raise ValueError("tiers: percentages go up to 100")
        return self

    def world(self) -> dict[str, Any]:
        """As the sandbox takes it."""
        month, year = int(self.outage_began[5:7]), int(self.outage_began[:4])
        sla = {"version": "1", "tiers": [one.plain_dict() for one in self.tiers]} if self.tiers else BUSINESS
        return {
            "plans": [{"id": "of-the-case", "name": "Business", "sla": sla}],
            "accounts": [
                {
                    "id": self.account,
                    "name": self.customer,
                    "billing_customer": f"cus_{self.account.replace('-', '').lower()}",
                    "plan": "of-the-case",
                    "standing": "good",
                }
            ],
            "incidents": [
                {
                    "id": self.incident,
                    "version": 1,
                    "final": True,
                    "title": "Outage",
                    "started_at": self.outage_began,
                    "ended_at": self.outage_ended,
                    "affected": [self.account],
                }
            ],
            "invoices": [
                {
                    "number": self.invoice,
                    "account": self.account,
                    "currency": self.currency.lower(),
                    "total_minor": parse_amount(text=self.total, currency=self.currency).minor,
                    "period_start": f"{year}-{month:02d}-01",
                    "period_end": f"{year + month // 12}-{month % 12 + 1:02d}-01",
                    "due": f"{year + 1}-12-31",
                    "status": "open",
                }
            ],
            "tickets": [
                {
                    "id": self.ticket,
                    "account": self.account,
                    "incident": self.incident,
                    "subject": self.subject,
                    "body": self.text,
                    "status": "open",
                    "messages": [],
                }
            ],
        }


def read_case(*, path: Path) -> CaseFile:
    """The case in a file. Raises BadCase."""
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise BadCase(f"{path}: cannot be read ({problem.strerror}); give the path of a JSON file") from None
    if len(raw) > MAX_BYTES:
        raise BadCase(f"{path}: is larger than {MAX_BYTES} bytes")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise BadCase(f"{path}: is not JSON ({problem}); write one object in braces") from None
    if not isinstance(found, dict):
        raise BadCase(f"{path}: holds no object; write one in braces, as examples/case.json does")
    try:
        return CaseFile.model_validate(found)
    except ValidationError as problem:
        lines = [
            f"  {'.'.join(str(part) for part in one['loc']) or 'case'}: {one['msg'].removeprefix('Value error, ')}"
            for one in problem.errors()
        ]
        raise BadCase(f"{path}: is not a case:\n" + "\n".join(lines)) from None
