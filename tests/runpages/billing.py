"""Billing as the desk asks it, in memory: it says what a test wants it to say."""

from typing import ClassVar

from runs.tools.base import Contract, Lookup, Record, Unreachable
from runs.tools.billing.contract import CREATE_CREDIT


class Billing:
    """In the place of the tool: `records` is what a lookup finds, None that nobody answers; `asked` counts."""

    contract: ClassVar[Contract] = CREATE_CREDIT

    def __init__(self) -> None:
        self.records: tuple[Record, ...] | None = ()
        self.asked = 0

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        raise AssertionError("the desk never sends")

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        self.asked += 1
        if self.records is None:
            raise Unreachable("Billing did not answer within 10 s.")
        return Lookup(records=self.records, pages=1)


def record(identity: str, reference: str = "CR-5519", *, amount: str = "100000", void: bool = False) -> Record:
    """As in the scenes: 1,200.00 was sent. With that amount it is recorded as sent."""
    mismatch = {} if amount == "120000" else {"amount_minor": ("120000", amount)}
    mismatch |= {"status": ("issued", "void")} if void else {}
    return Record(reference=reference, identity=identity, void=void, mismatch=mismatch, raw={"number": reference})
