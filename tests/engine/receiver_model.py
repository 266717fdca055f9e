"""A receiver in memory that is exactly as bad as its contract allows: late, forgetful after a day, slow to show."""

import datetime as dt
import uuid
from dataclasses import dataclass, field

from runs.tools.base import Contract, Lookup, Record, Repeat


@dataclass
class Clock:
    """Time that passes only when told to."""

    at: dt.datetime

    def now(self) -> dt.datetime:
        self.at += dt.timedelta(microseconds=10)
        return self.at

    def tick(self, seconds: float) -> None:
        self.at += dt.timedelta(seconds=seconds)


@dataclass
class Effect:
    reference: str
    identity: str
    visible_from: dt.datetime
    pending: bool = False  # taken on, and not decided yet
    void: bool = False  # undone since, or not carried out after all


@dataclass
class Packet:
    """A call on its way: it may have its effect any time until the caller's limit is over."""

    identity: str
    wire_key: str
    ends: dt.datetime


@dataclass
class Receiver:
    contract: Contract
    clock: Clock
    effects: list[Effect] = field(default_factory=list)
    keys: dict[str, tuple[Effect, dt.datetime]] = field(default_factory=dict)
    underway: list[Packet] = field(default_factory=list)

    def call(self, *, identity: str, wire_key: str) -> Packet:
        packet = Packet(identity, wire_key, self.clock.now() + self.contract.call_limit)
        self.underway.append(packet)
        return packet

    def deliver(self, packet: Packet, *, lag: float, pending: bool = False) -> Record | None:
        """The call arrives; its effect takes `lag` (0 to 1) of the settling time to show, and may at first be taken on
        only (`pending`). None: too late."""
        self.underway.remove(packet)
        now = self.clock.now()
        if now > packet.ends:
            return None
        kept = self.keys.get(packet.wire_key)
        honours = self.contract.repeat == Repeat.BY_IDENTITY
        if honours and kept is not None and now < kept[1] + self.contract.retention:
            return self._record(kept[0])
        shows = now + self.contract.settling * lag
        effect = Effect(f"CN-{uuid.uuid4().hex[:8]}", packet.identity, shows, pending)
        self.effects.append(effect)
        self.keys[packet.wire_key] = (effect, now)
        return self._record(effect)

    def drop(self, packet: Packet) -> None:
        self.underway.remove(packet)

    def look_up(self, *, asked_at: dt.datetime, identity: str) -> Lookup:
        found = [one for one in self.effects if one.identity == identity and one.visible_from <= asked_at]
        return Lookup(records=tuple(self._record(one) for one in found), pages=1)

    def may_still_arrive(self) -> bool:
        return any(one.ends >= self.clock.at for one in self.underway)

    @property
    def standing(self) -> list[Effect]:
        """The effects of which something stands."""
        return [one for one in self.effects if not one.void]

    @staticmethod
    def _record(effect: Effect) -> Record:
        return Record(
            reference=effect.reference,
            identity=effect.identity,
            void=effect.void,
            pending=effect.pending,
            mismatch={"status": ("issued", "void")} if effect.void else {},
            raw={"reference": effect.reference},
        )
