"""Contracts with short times, so that absence is proved within seconds; the same in the test and in its workers."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from reconciliation.services import execute, gates
from runs.tools.billing.live import CreateCredit
from runs.tools.billing.void import VoidCredit
from runs.tools.helpdesk.live import DraftReply, UpdateTicket

CALL_LIMIT = 1.0  # seconds
START_WITHIN = 1.0


def short() -> dict[str, dt.timedelta]:
    """The contract's times."""
    return {"settling": dt.timedelta(seconds=0.3), "call_limit": dt.timedelta(seconds=CALL_LIMIT)}


def _values() -> list[tuple[Any, str, Any]]:
    tools = (CreateCredit, VoidCredit, UpdateTicket, DraftReply)
    return [
        *((one, "contract", replace(one.contract, **short())) for one in tools),
        (execute, "START_WITHIN", dt.timedelta(seconds=START_WITHIN)),
        (execute, "RESOURCE_RETRY", dt.timedelta(seconds=0.3)),
        (gates, "FIRST_PAUSE", 0.2),
        (settings, "CALL_LIMIT_SECONDS", CALL_LIMIT),
        (settings, "HELD_RETRY", dt.timedelta(seconds=0.2)),
    ]


def quicken(patch: pytest.MonkeyPatch) -> None:
    for target, name, value in _values():
        patch.setattr(target, name, value)


def quicken_for_good() -> None:
    """In a process that ends with its work."""
    for target, name, value in _values():
        setattr(target, name, value)
