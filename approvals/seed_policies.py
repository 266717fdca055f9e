"""The policies a new installation starts with. Pure constants; amounts in minor units.

That one ticket and incident get one credit is held by the operation's business key, whatever a policy says.
"""

from dataclasses import dataclass
from typing import Any

from runs.money import Money


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedPolicy:
    slug: str
    name: str
    tools: tuple[str, ...]
    document: dict[str, Any]
    note: str


MANAGERS = "manager"
# currency → what needs no approval; ten times that is refused, twenty times that is a month's total of an account
AUTOMATIC_UP_TO = {
    "USD": 100_000,  # 1,000.00
    "EUR": 100_000,
    "GBP": 80_000,
    "JPY": 150_000,  # no decimal places
    "KRW": 1_400_000,  # no decimal places
    "KWD": 300_000,  # 300.000
    "BHD": 400_000,  # 400.000
}
_ASK = {"group": MANAGERS, "quorum": 1, "respond_within_minutes": 240, "valid_for_minutes": 60}
_ASK_OR_STANDING = {**_ASK, "standing": True}


def _tiers(currency: str, limit: int) -> list[dict[str, Any]]:
    most = limit * 10
    named = f"currency == '{currency}' && amount_minor"
    low, high = Money(limit, currency), Money(most, currency)
    code = currency.lower()
    return [
        {
            "id": f"{code}-automatic",
            "effect": "allow",
            "text": f"Credits up to {low} need no approval",
            "when": f"{named} <= {limit}",
        },
        {
            "id": f"{code}-manager",
            "effect": "ask",
            "text": f"Credits above {low} need a support manager",
            "when": f"{named} > {limit}",
            "ask": _ASK_OR_STANDING,
        },
        {
            "id": f"{code}-too-much",
            "effect": "deny",
            "text": f"Credits above {high} are never made here",
            "when": f"{named} > {most}",
        },
    ]


SERVICE_CREDITS = SeedPolicy(
    slug="service-credits",
    name="Service credits",
    tools=("billing.create_credit",),
    document={
        "rules": [
            *(rule for currency, limit in AUTOMATIC_UP_TO.items() for rule in _tiers(currency, limit)),
            {
                "id": "account-day",
                "effect": "ask",
                "text": "Credits of an account that together need a manager, within 24 hours, do so one by one",
                # a larger one is asked about anyway
                "when": " || ".join(
                    f"(currency == '{currency}' && amount_minor <= {limit})"
                    for currency, limit in AUTOMATIC_UP_TO.items()
                ),
                "window": {
                    "by": "account",
                    "hours": 24,
                    "above": {currency: str(limit) for currency, limit in AUTOMATIC_UP_TO.items()},
                },
                "ask": _ASK_OR_STANDING,
            },
            {
                "id": "standing",
                "effect": "deny",
                "text": "Accounts that are not in good standing get no credit",
                "when": "account_standing != 'good'",
            },
            {
                "id": "incident-final",
                "effect": "deny",
                "text": "No credit before the incident report is final",
                "when": "!incident_final",
            },
        ],
        "totals": [
            {
                "id": "account-month",
                "text": "Credits of an account in a month",
                "key": ["account", "month", "currency"],
                "amount": "amount_minor",
                "limits": {currency: str(limit * 20) for currency, limit in AUTOMATIC_UP_TO.items()},
            }
        ],
        "standing": {
            "group": MANAGERS,
            "most": {currency: str(limit * 10) for currency, limit in AUTOMATIC_UP_TO.items()},
            "alone_up_to": {currency: str(limit * 2) for currency, limit in AUTOMATIC_UP_TO.items()},
            "longest_days": 92,
        },
    },
    note="Small credits are automatic; larger ones, and small ones of one account that add up to one within 24 hours,"
    " need a support manager. A ticket and incident get one credit, however often it is proposed: that is held by the"
    " operation itself.",
)

TICKET_WORK = SeedPolicy(
    slug="ticket-work",
    name="Ticket work",
    tools=("helpdesk.update_ticket", "helpdesk.draft_reply"),
    document={
        "rules": [
            {
                "id": "automatic",
                "effect": "allow",
                "text": "Updating a ticket and drafting a reply need no approval",
                "when": "true",
            }
        ]
    },
    note="Neither reaches the customer: a person sends the draft.",
)

TICKET_COMMENTS = SeedPolicy(
    slug="ticket-comments",
    name="Ticket comments",
    tools=("helpdesk.add_comment",),
    document={
        "rules": [
            {
                "id": "manager",
                "effect": "ask",
                "text": "Comments the customer can read need a support manager",
                "when": "true",
                "ask": _ASK,
            }
        ]
    },
    note="A comment is visible to the customer at once.",
)

REVERSALS = SeedPolicy(
    slug="reversals",
    name="Reversals",
    tools=("billing.void_credit",),
    document={
        "rules": [
            {
                "id": "manager",
                "effect": "ask",
                "text": "Taking a credit back needs a support manager",
                "when": "true",
                "ask": _ASK,
            }
        ]
    },
    note="Whatever its amount, for the customer may have been told of the credit. Nobody approves what they proposed.",
)

SEEDS = (SERVICE_CREDITS, TICKET_WORK, TICKET_COMMENTS, REVERSALS)
