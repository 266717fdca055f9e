"""Everything that will happen, worked out from the seed before anything starts: the same seed, the same schedule. Pure.

Faults belong to operations, not to moments: whatever the timing, the first call of an operation that reaches the other
side meets the fault that was drawn for it.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from agentops.chaos.scale import PARTS, SLOWEST, Scale

Fault = dict[str, Any]

CREDIT, TICKET, REPLY = "billing.credit_notes.create", "helpdesk.tickets.update", "helpdesk.drafts.create"
LOOKUPS = {TICKET: "helpdesk.tickets.changes", REPLY: "helpdesk.drafts.list"}
SOURCE = "billing.invoices.list"  # read before a credit is proposed and again before it is sent
CREATED = "credit_note.created"

# shares of all operations
SHARES = {
    "execute_and_timeout": 0.10,
    "timeout_without_effect": 0.10,
    "execute_then_5xx": 0.05,
    "5xx_without_effect": 0.05,
}
# each of these a few more times than must be seen
OTHERS = (
    "ok_slow",
    "execute_then_reset",
    "reset_without_effect",
    "cut_body",
    "same_key_running",
    "param_mismatch",
    "overloaded",
    "key_forgotten_after",
    "keys_ignored",
)
OF_CREDITS = ("accepted_then_failed_event", "event_before_response")
OF_TICKETS = ("precondition",)
EVENT_SHARES = {"events_duplicate": 0.20, "events_reorder": 0.20}  # of all credits
EVENT_OTHERS = ("events_delay", "events_forged", "events_wrong_signature")
# A lookup may lie only as long as a contract says it may: "not found" where nothing happened, stale by a second.
LOOKUP_AFTER = {
    "lookup_not_found": ("timeout_without_effect", "5xx_without_effect", "reset_without_effect"),
    "lookup_stale": ("execute_and_timeout", "execute_then_5xx", "execute_then_reset", "cut_body"),
    "lookup_error": ("execute_and_timeout", "timeout_without_effect", "execute_then_5xx", "5xx_without_effect"),
}
MODES = (*SHARES, *OTHERS, *OF_CREDITS, *OF_TICKETS, *EVENT_SHARES, *EVENT_OTHERS, *LOOKUP_AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """One outage of one customer. `twin`: a second ticket asks for the same credit. `corrections`: (seconds after the
    start, new total) of the invoice. `again`: the start is asked for twice."""

    number: int
    starts_at: float
    total_minor: int
    twin: bool
    again: bool
    corrections: tuple[tuple[float, int], ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def account(self) -> str:
        return f"ACC-{self.number}"

    @property
    def billing_customer(self) -> str:
        return f"cus_acc{self.number}"

    @property
    def invoice(self) -> str:
        return f"INV-{self.number}"

    @property
    def tickets(self) -> tuple[str, ...]:
        return (f"CH-{self.number}", f"CH-{self.number + 500_000}") if self.twin else (f"CH-{self.number}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """`act` is kill or freeze; `pick` in [0, 1) chooses among several of a kind; `seconds` is how long it is frozen."""

    at: float
    act: str
    part: str
    pick: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    customers: tuple[Customer, ...]
    blows: tuple[Blow, ...]


def make(*, seed: int, scale: Scale) -> Schedule:
    """The schedule of a seed."""
    return Schedule(
        customers=tuple(_customers(random.Random(f"{seed}:customers"), scale)),
        blows=tuple(_blows(random.Random(f"{seed}:blows"), scale)),
    )


# ---- customers and the faults their operations meet


@dataclass(slots=True)
class _Slot:
    customer: int
    operation: str
    faults: list[Fault] = field(default_factory=list)


def _customers(rng: random.Random, scale: Scale) -> list[Customer]:
    count = scale.customers
    numbers = range(100_001, 100_001 + count)
    twins = set(rng.sample(numbers, max(1, count // 40)))
    slots = [
        _Slot(number, operation)
        for number in numbers
        for operation in (CREDIT, TICKET, REPLY)
        if operation == CREDIT or number not in twins  # which of two tickets goes on is not known beforehand
    ]
    _deal(rng, slots, scale, operations=count * 3)
    faults: dict[int, list[Fault]] = {}
    for slot in slots:
        faults.setdefault(slot.customer, []).extend(slot.faults)
    found = []
    for place, number in enumerate(numbers):
        totals = [rng.randrange(500_000, 900_000) for _ in range(3)]
        wanted = rng.choices((0, 1, 2), weights=(88, 10, 2))[0]
        found.append(
            Customer(
                number=number,
                starts_at=1 + scale.seconds * 0.88 * (place + rng.random()) / count,
                total_minor=totals[0],
                twin=number in twins,
                again=rng.random() < 0.15,
                corrections=tuple((rng.uniform(0.2, 8), total) for total in totals[1 : 1 + wanted]),
                faults=tuple(faults.get(number, ())),
            )
        )
    return found


def _deal(rng: random.Random, slots: list[_Slot], scale: Scale, *, operations: int) -> None:
    """Give at most one fault to each operation's first call, one to a credit's event, one to a ticket's lookup."""
    rare = max(scale.least_faults + 1 + scale.least_faults // 4, operations * 3 // 200)
    rng.shuffle(slots)
    credits = [slot for slot in slots if slot.operation == CREDIT]
    for mode in [*OF_CREDITS * rare]:
        credits.pop().faults.append(_on_call(rng, CREDIT, mode, scale))
    tickets = [slot for slot in slots if slot.operation == TICKET]
    for mode in [*OF_TICKETS * rare]:
        tickets.pop().faults.append(_on_call(rng, TICKET, mode, scale))
    modes = [mode for mode, share in SHARES.items() for _ in range(-int(-operations * share // 1))]
    modes += [*OTHERS * rare]
    rng.shuffle(modes)
    free = [slot for slot in slots if not slot.faults]
    for slot, mode in zip(free, modes, strict=False):
        slot.faults.append(_on_call(rng, slot.operation, mode, scale))
    _deal_lookups(rng, free, rare)
    every = [slot for slot in slots if slot.operation == CREDIT]
    for slot in rng.sample(every, rare):
        slot.faults.append({"mode": "lookup_error", "operation": SOURCE, "params": {}})
    rng.shuffle(every)
    events = [mode for mode, share in EVENT_SHARES.items() for _ in range(-int(-len(every) * share // 1))]
    for slot, mode in zip(every, [*events, *EVENT_OTHERS * rare], strict=False):
        slot.faults.append(_on_event(rng, mode))


def _deal_lookups(rng: random.Random, slots: list[_Slot], rare: int) -> None:
    taken: set[int] = set()
    for lookup, after in LOOKUP_AFTER.items():
        fitting = [
            place
            for place, slot in enumerate(slots)
            if slot.faults and slot.operation in LOOKUPS and slot.faults[0]["mode"] in after and place not in taken
        ]
        for place in fitting[:rare]:
            taken.add(place)
            params = {"seconds": 1.0} if lookup == "lookup_stale" else {}
            slots[place].faults.append({"mode": lookup, "operation": LOOKUPS[slots[place].operation], "params": params})


def _on_call(rng: random.Random, operation: str, mode: str, scale: Scale) -> Fault:
    params: dict[str, Any] = {}
    if mode == "ok_slow":
        late = rng.random() < 0.5  # half of them answer after the caller has left
        effect_at = rng.choice(("start", "end"))
        params = {"seconds": scale.call_limit + 0.7 if late else 0.5, "effect_at": effect_at}
    elif mode in ("execute_and_timeout", "timeout_without_effect"):
        params = {"seconds": scale.call_limit + 1}
    elif mode in ("execute_then_5xx", "5xx_without_effect"):
        params = {"status": rng.choice((500, 502, 503))}
    elif mode == "overloaded":
        params = {"retry_after": rng.choice(("seconds", "date", "garbage", "none")), "seconds": 1.0}
    elif mode == "key_forgotten_after":
        params = {"seconds": rng.choice((0.0, 1.0))}
    elif mode == "accepted_then_failed_event":
        params = {"seconds": rng.choice((1.0, 4.0))}
    return {"mode": mode, "operation": operation, "params": params}


def _on_event(rng: random.Random, mode: str) -> Fault:
    params: dict[str, Any] = {}
    if mode == "events_duplicate":
        params = {"copies": rng.choice((2, 3, 5))}
    elif mode in ("events_reorder", "events_delay"):
        params = {"seconds": rng.choice((2.0, 4.0))}
    elif mode == "events_forged":
        params = {"signed": rng.random() < 0.5}
    return {"mode": mode, "operation": CREDIT, "params": params, "match": {"event_type": CREATED}}


# ---- kills and freezes


def _blows(rng: random.Random, scale: Scale) -> list[Blow]:
    """Enough for the longest that the storm may last."""
    found: list[Blow] = []
    waiting: list[tuple[str, str]] = []
    at = 2.0 if scale.seconds > 60 else 1.0
    while (at := at + rng.uniform(*scale.gap)) < scale.seconds * SLOWEST:
        if not waiting:
            waiting = [("kill", part) for part in PARTS] + [("freeze", part) for part in rng.sample(PARTS, 3)]
            rng.shuffle(waiting)
        act, part = waiting.pop()
        seconds = _frozen_for(rng, part, scale) if act == "freeze" else 0.0
        found.append(Blow(at=at, act=act, part=part, pick=rng.random(), seconds=seconds))
    return found


def _frozen_for(rng: random.Random, part: str, scale: Scale) -> float:
    """Short enough that the rest goes on; every other worker outlasts its lease, so that another takes its run over."""
    if part == "worker child" and rng.random() < 0.5:
        return scale.lease + rng.uniform(1, 4)
    return rng.uniform(0.5, 3)
