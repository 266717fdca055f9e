"""The demo's outside world in words: the calls that this product's tools and sources make, and its faults. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

# a system's heading, and its operations as the sandbox names them; one line for each call of runs.tools
CALLS: dict[str, dict[str, str]] = {
    "Billing": {
        "billing.credit_notes.create": "Create credit",
        "billing.credit_notes.list": "Look up the credits of an invoice",
        "billing.credit_notes.void": "Void credit",
        "billing.credit_notes.retrieve": "Read one credit",
        "billing.events.list": "Look up who voided a credit",
        "billing.invoices.list": "Read the invoices of a customer",
        "billing.invoices.retrieve": "Read one invoice",
        "billing.invoices.list_lines": "Read the lines of an invoice",
    },
    "Help desk": {
        "helpdesk.tickets.update": "Update ticket",
        "helpdesk.tickets.changes": "Look up the changes of a ticket",
        "helpdesk.drafts.create": "Draft reply",
        "helpdesk.drafts.list": "Look up the drafts on a ticket",
        "helpdesk.tickets.retrieve": "Read a ticket",
        "helpdesk.incidents.retrieve": "Read an incident",
        "helpdesk.accounts.retrieve": "Read an account",
        "helpdesk.plans.retrieve": "Read a plan and its SLA",
    },
}
# what happens out there without a call of ours
ELSEWHERE = {"billing.invoices.correct": "Correct an invoice, by hand"}
ANY = "*"
_NAMES = {name: words for calls in CALLS.values() for name, words in calls.items()} | ELSEWHERE | {ANY: "Any call"}


def operation(*, name: str) -> str:
    """`Create credit` for `billing.credit_notes.create`; a name without words stays readable."""
    return _NAMES.get(name) or name.replace(".", " ").replace("_", " ")


def fault(*, name: str, modes: Sequence[Mapping[str, Any]]) -> str:
    """The sentence that the sandbox itself has for a fault mode."""
    return next((str(one["explanation"]) for one in modes if one["name"] == name), name.replace("_", " "))


def modes_in_use(*, modes: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Names and sentences of the modes that can befall a call of ours."""
    used = [one for one in modes if any(operation in _NAMES for operation in one["operations"])]
    return [(str(one["name"]), str(one["explanation"])) for one in used]


def calls_in_use() -> list[tuple[str, Any]]:
    """Choices of a field, grouped by system."""
    return [(ANY, _NAMES[ANY]), *((system, list(calls.items())) for system, calls in CALLS.items())]
