"""Writing down what is counted together. A building block: inside the caller's transaction, run and policy locked."""

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Any, get_args

from django.db import connection

from approvals.models import PolicyVersion, Tally
from approvals.rules import Window
from runs import clock
from runs.models import Proposal

BY: tuple[str, ...] = get_args(Window.model_fields["by"].annotation)


def tally(*, proposal: Proposal, version: PolicyVersion, variables: Mapping[str, Any]) -> None:
    """Count the proposal's amount under every variable that is known of it, once, before it is judged.

    Where the policy looks at sums, those who count under the same value wait for each other until their transactions
    end: of two that are judged at once the later sees the earlier.
    """
    if proposal.amount_minor is None or not proposal.currency:
        return
    known = {name: variables.get(name) for name in BY}
    values = {
        name: unicodedata.normalize("NFC", value)
        for name, value in known.items()
        if isinstance(value, str) and 0 < len(value) <= 300
    }
    looked_at = {rule["window"]["by"] for rule in version.rules.get("rules", []) if rule.get("window")}
    keys = [f"{name}/{values[name]}/{proposal.currency}" for name in looked_at & set(values)]
    _wait_for_turn(keys)
    now = clock.read() if keys else clock.now()
    Tally.objects.bulk_create(
        [
            Tally(
                proposal=proposal,
                tool=proposal.tool,
                by=name,
                value=value,
                currency=proposal.currency,
                amount_minor=proposal.amount_minor,
                at=now,
            )
            for name, value in sorted(values.items())
        ],
        ignore_conflicts=True,
    )


def _wait_for_turn(keys: list[str]) -> None:
    """The advisory locks of these keys, in the order of their numbers."""
    numbers = sorted(int.from_bytes(hashlib.sha256(f"tally/{key}".encode()).digest()[:8], signed=True) for key in keys)
    with connection.cursor() as cursor:
        for number in numbers:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])
