"""Every tool there is, by name. Adding one is a line here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, cast

from django.conf import settings

from runs.hiding import OURS
from runs.tools.base import Contract, Ledger, Reverser, Tool
from runs.tools.billing.live import CreateCredit
from runs.tools.billing.statement import CreditNotes
from runs.tools.billing.void import VoidCredit
from runs.tools.helpdesk.live import DraftReply, UpdateTicket
from runs.tools.http import Connection


class Connector(Protocol):
    """A connector's class: what it promises, and how it is made."""

    @property
    def contract(self) -> Contract: ...

    def __call__(self, connection: Connection) -> Tool: ...


@dataclass(frozen=True, slots=True)
class _System:
    url: str
    secret: str
    title: str


# names of the settings that say where a system is and how to get in, and what people call it
SYSTEMS: dict[str, _System] = {
    "billing": _System("BILLING_URL", "BILLING_API_KEY", "Billing"),
    "helpdesk": _System("HELPDESK_URL", "HELPDESK_TOKEN", "Help desk"),
}

OURS.update(one.secret for one in SYSTEMS.values())

TOOLS: dict[str, Connector] = {
    "billing.create_credit": CreateCredit,
    "billing.void_credit": VoidCredit,
    "helpdesk.update_ticket": UpdateTicket,
    "helpdesk.draft_reply": DraftReply,
}


# systems that can be asked for all they have recorded in a period
LEDGERS: dict[str, Callable[[Connection], Ledger]] = {"billing": CreditNotes}


class UnknownTool(LookupError):
    """No tool has this name; the message lists those that exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no tool {name!r}; there are {', '.join(sorted(TOOLS))}")


def connection(system: str) -> Connection:
    """Where the system is, from the settings. The limit is that of the calls to it, in seconds."""
    names = SYSTEMS[system]
    return Connection(
        system=system,
        url=getattr(settings, names.url),
        secret=getattr(settings, names.secret),
        limit=settings.CALL_LIMIT_SECONDS,
    )


def contract(name: str) -> Contract:
    """What the tool promises. Raises UnknownTool."""
    if name not in TOOLS:
        raise UnknownTool(name)
    return TOOLS[name].contract


def tool(name: str) -> Tool:
    """The tool, ready to send and look up; it keeps no state. Raises UnknownTool."""
    promised = contract(name)
    reach = connection(promised.system)
    # a call never takes longer than its contract says, since absence is concluded from that limit
    limit = min(reach.limit, promised.call_limit.total_seconds())
    return TOOLS[name](replace(reach, limit=limit))


def reverser(name: str) -> Reverser:
    """The same of a tool that undoes. Raises UnknownTool, and ValueError for a tool that does not."""
    found = tool(name)
    if not found.contract.only_reverses:
        raise ValueError(f"{name} undoes nothing")
    return cast(Reverser, found)


def ledger(system: str) -> Ledger:
    """All that the system has recorded, ready to be listed. Raises KeyError for a system that cannot be asked so."""
    return LEDGERS[system](connection(system))
