"""What the agent of a service credit run may choose, and nothing else."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from runs.money import CurrencyText, MinorText, Strict

Rationale = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2000),
    Field(description="Your reasons, for the person who decides: which facts, which figures."),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class IssueCredit(Strict):
    """Propose a credit that the SLA owes for an incident, against the invoice of the incident's month."""

    kind: Literal["issue_credit"] = "issue_credit"
    invoice: Annotated[Name, Field(description="The invoice's number, such as INV-2041.")]
    incident: Annotated[Name, Field(description="The incident's number, such as INC-311.")]
    amount_minor: Annotated[
        MinorText, Field(description='The amount in the smallest unit of the currency, as text: "120000" is $1,200.00.')
    ]
    currency: Annotated[CurrencyText, Field(description="The invoice's ISO 4217 currency code.")]
    downtime_minutes: Annotated[int, Field(ge=0, le=10_000_000, description="Full minutes of downtime you counted.")]
    rationale: Rationale


class AskForDocument(Strict):
    """Say which document is missing or not final, when the credit cannot be worked out without it."""

    kind: Literal["ask_for_document"] = "ask_for_document"
    document: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    rationale: Rationale


class Escalate(Strict):
    """Hand the ticket to a person: no credit is due, the request is something else, or you are not sure."""

    kind: Literal["escalate"] = "escalate"
    rationale: Rationale
