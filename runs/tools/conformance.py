"""Does a connector do what its contract declares? Each declared thing is tried out on the receiver itself.

A `Ground` is where that may be done: it makes effects that may really be carried out, and says what else can be tried
there. What a ground cannot do is reported as not tried, never as kept.
"""

import contextlib
import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from runs import times
from runs.tools.base import Contract, Overloaded, Record, Refused, Repeat, Tool, ToolError, Unreachable

MARGIN = dt.timedelta(minutes=10)  # a key is used again until this long before its retention ends
SLACK = 1.0  # seconds that a machine may take beyond a limit
MOST_CALLS = 10

Effect = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a connector may be tried. `effect` makes another one each time, all of them harmless there; `vary` changes
    what one of them does.

    Optional: `same_purpose` makes another effect for the same business purpose; `make_stale` lets somebody else change
    the document an effect is meant for; `age` lets time pass for the receiver's keys; `effects` counts what was really
    done under an identity and `touched` names it in the words of the contract's `resources`; `silent` is a connector to
    a receiver that never answers, `down` one to a receiver that cannot be reached."""

    tool: Tool
    effect: Callable[[], Effect]
    vary: Callable[[Effect], Effect]
    same_purpose: Callable[[Effect], Effect] | None = None
    make_stale: Callable[[Effect], None] | None = None
    age: Callable[[dt.timedelta], None] | None = None
    effects: Callable[[str], int] | None = None
    touched: Callable[[str], set[str]] | None = None
    silent: Callable[[], Tool] | None = None
    down: Tool | None = None


class Said(StrEnum):
    KEPT = "kept"
    BROKEN = "broken"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`declares` is the promise in words, `detail` what was seen."""

    name: str
    declares: str
    said: Said
    detail: str


class Broken(Exception):
    """The receiver does not do what the contract declares."""


class NotTried(Exception):
    """This ground cannot show it."""


@dataclass(frozen=True, slots=True)
class _Trial:
    ground: Ground
    contract: Contract

    def identity(self) -> str:
        return f"conformance/{self.contract.name}/{uuid.uuid4()}"

    def send(self, effect: Effect, identity: str, *, by: Tool | None = None) -> Record:
        tool = self.ground.tool if by is None else by
        return tool.send(effect=effect, identity=identity, wire_key=f"{identity}:0")

    def found(self, effect: Effect, identity: str) -> tuple[Record, ...]:
        return self.ground.tool.look_up(effect=effect, identity=identity).records

    def once_shown(self, effect: Effect, identity: str) -> tuple[Record, ...]:
        """What a lookup shows once it must be shown."""
        until = time.monotonic() + self.contract.settling.total_seconds()
        while not (records := self.found(effect, identity)) and time.monotonic() < until:
            time.sleep(0.05)
        return records

    def just_one(self, effect: Effect, identity: str, made: Record) -> None:
        shown = [one.reference for one in self.once_shown(effect, identity)]
        if shown != [made.reference]:
            raise Broken(f"a lookup shows {', '.join(shown) or 'nothing'} instead of {made.reference} alone")
        if self.ground.effects is not None and (number := self.ground.effects(identity)) != 1:
            raise Broken(f"{number} effects were really made")


Check = Callable[[_Trial], str]


def _one_effect(trial: _Trial) -> str:
    effect, identity = trial.ground.effect(), trial.identity()
    trial.contract.effect.model_validate(effect)
    made = trial.send(effect, identity)
    if made.mismatch:
        raise Broken(f"the answer is not what was sent: {', '.join(sorted(made.mismatch))}")
    if made.identity != identity:
        raise Broken("the answer does not carry the identity that was sent")
    trial.just_one(effect, identity, made)
    return f"one effect, {made.reference}"


def _same_key(trial: _Trial) -> str:
    effect, identity = trial.ground.effect(), trial.identity()
    first, second = trial.send(effect, identity), trial.send(effect, identity)
    if first.reference != second.reference:
        raise Broken(f"the same key again made {second.reference} beside {first.reference}")
    trial.just_one(effect, identity, first)
    return "the same key again was answered with the first result"


def _other_parameters(trial: _Trial) -> str:
    effect, identity = trial.ground.effect(), trial.identity()
    made = trial.send(effect, identity)
    try:
        trial.send(trial.ground.vary(effect), identity)
    except ToolError as error:
        trial.just_one(effect, identity, made)
        return f"turned away: {error.detail}"
    raise Broken("the same key with other parameters was taken")


def _words(length: dt.timedelta) -> str:
    return times.span(seconds=length.total_seconds())


def _retention(trial: _Trial) -> str:
    kept = trial.contract.retention
    if kept <= MARGIN:
        raise Broken("a key that is kept for no longer than the margin protects nothing")
    if trial.ground.age is None:
        raise NotTried(f"it takes {_words(kept)} to see")
    effect, identity = trial.ground.effect(), trial.identity()
    made = trial.send(effect, identity)
    trial.ground.age(kept - MARGIN)
    if trial.send(effect, identity).reference != made.reference:
        raise Broken(f"the key was forgotten within {_words(kept - MARGIN)}")
    return f"still known after {_words(kept - MARGIN)}"


def _no_protection(trial: _Trial) -> str:
    if trial.contract.retention:
        raise Broken("it declares how long a key is kept, and not that the same key is safe to send again")
    return "no key is relied on"


def _shown(trial: _Trial) -> str:
    effect, identity = trial.ground.effect(), trial.identity()
    trial.send(effect, identity)
    found = trial.once_shown(effect, identity)
    if not found:
        raise Broken(f"what was made is not shown within {trial.contract.settling.total_seconds():g} s")
    if found[0].identity != identity or found[0].mismatch:
        raise Broken("what is shown is not what was sent, under its identity")
    return f"shown as {found[0].reference}"


def _only_its_own(trial: _Trial) -> str:
    effect, identity = trial.ground.effect(), trial.identity()
    trial.send(effect, identity)
    if shown := trial.found(effect, trial.identity()):
        raise Broken(f"an identity that was never sent shows {shown[0].reference}")
    return "an identity that was never sent shows nothing"


def _silence_is_no_absence(trial: _Trial) -> str:
    if trial.ground.down is None:
        raise NotTried("no connector to a receiver that cannot be reached is at hand")
    try:
        found = trial.ground.down.look_up(effect=trial.ground.effect(), identity=trial.identity())
    except Unreachable:
        return "a receiver that cannot be reached is called so"
    raise Broken(f"a receiver that cannot be reached is said to have recorded {len(found.records)}")


def _stale_is_refused(trial: _Trial) -> str:
    if trial.ground.make_stale is None:
        raise NotTried("nobody else can change the document here")
    effect, identity = trial.ground.effect(), trial.identity()
    trial.ground.make_stale(effect)
    try:
        made = trial.send(effect, identity)
    except Refused as error:
        if trial.found(effect, identity):
            raise Broken("it was refused, and yet there is an effect") from error
        return f"refused: {error.detail}"
    except ToolError as error:
        raise Broken(f"a changed document is not refused as such: {error.detail}") from error
    raise Broken(f"{made.reference} was made on a document that had changed")


def _business_key(trial: _Trial) -> str:
    key, effect, other = trial.contract.business_key, trial.ground.effect(), trial.ground.effect()
    if not 0 < len(key(effect)) <= 300:
        raise Broken("a business key has 1 to 300 letters")
    if key(effect) != key(dict(reversed(effect.items()))):
        raise Broken("the same effect has two keys")
    if key(effect) == key(other):
        raise Broken("effects for different purposes have one key")
    if trial.ground.same_purpose is not None and key(effect) != key(trial.ground.same_purpose(effect)):
        raise Broken("effects for the same purpose have two keys, so both could be made")
    return key(effect)


def _call_limit(trial: _Trial) -> str:
    if trial.ground.silent is None:
        raise NotTried("no receiver that never answers is at hand")
    effect, identity = trial.ground.effect(), trial.identity()
    tool, began = trial.ground.silent(), time.monotonic()
    with contextlib.suppress(ToolError):
        trial.send(effect, identity, by=tool)
    took, limit = time.monotonic() - began, tool.contract.call_limit.total_seconds()
    if took > limit + SLACK:
        raise Broken(f"a call took {took:.1f} s, the limit is {limit:g} s")
    return f"over after {took:.1f} s"


def _rate(trial: _Trial) -> str:
    rate = trial.contract.rate
    assert rate is not None
    for number in range(min(rate.calls + rate.burst, MOST_CALLS)):
        if number >= rate.burst:
            time.sleep(rate.spacing.total_seconds())
        try:
            trial.send(trial.ground.effect(), trial.identity())
        except Overloaded as error:
            raise Broken(f"call {number + 1} at that rate was turned away: {error.detail}") from error
    return f"{rate} was taken"


def _touches(trial: _Trial) -> str:
    effect, identity = trial.ground.effect(), trial.identity()
    named = trial.contract.resources(effect)
    if any(not 0 < len(one) <= 250 for one in named) or named != trial.contract.resources(dict(effect)):
        raise Broken("a resource's name has 1 to 250 letters and is the same each time")
    if trial.ground.touched is None:
        raise NotTried("what was really touched cannot be seen here")
    trial.send(effect, identity)
    if more := trial.ground.touched(identity) - set(named):
        raise Broken(f"it touched {', '.join(sorted(more))} as well")
    return f"only {', '.join(named)}"


def checks(*, contract: Contract) -> Iterator[tuple[str, str, Check]]:
    """All that this contract declares and that can be tried: a name, the promise in words, and how it is tried."""
    by_identity = contract.repeat == Repeat.BY_IDENTITY
    seconds = f"{contract.settling.total_seconds():g} s"
    yield "one effect", "One call makes one effect, as sent", _one_effect
    if by_identity:
        yield "repeatable", "The same key again never makes a second effect", _same_key
        yield "parameters", "The same key with other parameters is turned away", _other_parameters
        yield "retention", f"A key is kept for {_words(contract.retention)}", _retention
    else:
        yield "not repeatable", f"It is {contract.repeat}: no key protects it", _no_protection
    if contract.lookup_is_conclusive:
        yield "lookup shows", f"A lookup shows every effect within {seconds}", _shown
    yield "lookup is exact", "A lookup shows nothing of another identity", _only_its_own
    yield "silence", "A receiver that cannot be asked is not one that has nothing", _silence_is_no_absence
    if contract.precondition_field:
        yield "precondition", f"Refused when {contract.precondition_field} has moved on", _stale_is_refused
    yield "business key", "One key for each purpose, whoever asks", _business_key
    yield "call limit", f"A call is over within {contract.call_limit.total_seconds():g} s", _call_limit
    if contract.rate is not None:
        yield "rate", f"It takes {contract.rate}", _rate
    if contract.resources is not Contract.__dataclass_fields__["resources"].default:
        yield "touches", "It touches what it names and nothing else", _touches


def examine(*, ground: Ground) -> list[Finding]:
    """Try everything that the connector's contract declares. Real effects are made on the ground."""
    trial, found = _Trial(ground, ground.tool.contract), []
    for name, declares, check in checks(contract=ground.tool.contract):
        try:
            said, detail = Said.KEPT, check(trial)
        except NotTried as why:
            said, detail = Said.NOT_TRIED, str(why)
        except Broken as why:
            said, detail = Said.BROKEN, str(why)
        except (ToolError, Unreachable, ValueError) as error:
            said, detail = Said.BROKEN, f"{type(error).__name__}: {error}"
        found.append(Finding(name=name, declares=declares, said=said, detail=detail))
    return found
