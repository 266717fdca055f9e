"""A list of the plain system that is as long as its period has seconds, one record in each; every tenth is ours."""

import datetime as dt
from typing import ClassVar

from agentops.bench.plain import NOTE_CONTRACT
from runs.tools.base import Listed, ListPage
from runs.tools.http import Connection

PAGE = 100
OURS = 10
MINOR = 1000
CURRENCY = "USD"


def identity_at(*, second: int) -> str:
    """The identity of what we recorded in that second."""
    return f"bench/plain.note/{second}"


def reference_at(*, second: int) -> str:
    return f"N-{second}"


class Notes:
    """See `runs.tools.base.Ledger`. Oldest first; nothing is asked of anybody."""

    title: ClassVar[str] = "Notes"
    tools: ClassVar[tuple[str, ...]] = (NOTE_CONTRACT.name,)
    settling: ClassVar[dt.timedelta] = dt.timedelta(0)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list_recorded(self, *, since: dt.datetime, until: dt.datetime, cursor: str) -> ListPage:
        """See `runs.tools.base.Ledger`."""
        first = int(cursor or since.timestamp())
        end = int(until.timestamp())
        last = min(first + PAGE, end)
        return ListPage(
            lines=tuple(_line(second) for second in range(first, last)), cursor=str(last) if last < end else ""
        )


def _line(second: int) -> Listed:
    ours = second % OURS == 0
    reference = reference_at(second=second)
    return Listed(
        key=reference,
        reference=reference,
        identity=identity_at(second=second) if ours else "",
        account="",
        amount_minor=MINOR,
        currency=CURRENCY,
        at=dt.datetime.fromtimestamp(second, dt.UTC),
        raw={"id": reference, "amount": MINOR, "currency": CURRENCY, "note": "x" * 300},
    )
