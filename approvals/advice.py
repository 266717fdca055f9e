"""What a person should know about a valid policy before it is published: rules that can never decide anything, amounts
and currencies that no rule covers, rules that get in each other's way. Pure; says only what is proved."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from approvals import reach
from approvals.evaluation import WindowNeed, evaluate
from approvals.expressions import MAX_INTEGER, Node, names, read
from approvals.reach import Alternative, TooMuch
from approvals.rules import VARIABLES, PolicyDocument, Problem, Rule
from runs.money import MAX_MINOR, Money

MAX_PAIRS = 300


@dataclass(frozen=True, slots=True)
class Advice:
    """`warnings` are about what is almost certainly a mistake; `hints` about what should at least be meant."""

    warnings: list[Problem] = field(default_factory=list)
    hints: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Read:
    rule: Rule
    node: Node
    ways: list[Alternative] | None  # None: too many to tell


def advise(*, document: Any) -> Advice:
    """Of a document that `rules.validate` has nothing against."""
    parsed = PolicyDocument.model_validate(document)
    found = [_taken_apart(rule) for rule in parsed.rules]
    # a rule that looks at sums matches now and then: it always outweighs nothing, and covers nothing for sure
    steady = [one for one in found if one.rule.window is None]
    warnings = [problem for one in found if (problem := _pointless(one, steady)) is not None]
    warnings += _asked_together(document, found)
    warnings += _no_limit(parsed, found)
    warnings += _no_sum(found)
    return Advice(warnings, [*_gaps(parsed, steady), *_nothing_to_type(found)])


def _nothing_to_type(found: list[_Read]) -> list[Problem]:
    """A rule that has the amount typed again, and does not look at the amount: without one its actions are refused."""
    typed = [one for one in found if one.rule.ask is not None and one.rule.ask.confirm == "retype"]
    return [
        _warn(one, f"{one.rule.id} has the amount typed again: an action that has no amount is refused")
        for one in typed
        if "amount_minor" not in names(one.node)
    ]


def _no_sum(found: list[_Read]) -> list[Problem]:
    """A rule that looks at sums of a currency it names, and has no limit for it: nothing in it is ever allowed."""
    problems = []
    for one in found:
        named = {str(v) for way in one.ways or [] for fact in way if fact.name == "currency" for v in fact.values}
        for currency in sorted(named - set(one.rule.window.above)) if one.rule.window is not None else ():
            if _can(one, reach.fact("currency", "==", currency)):
                remedy = f"has no limit for {currency}, so wherever its condition holds in it that is refused; add one"
                problems.append(Problem(where=one.rule.id, field="window.above", remedy=remedy))
    return problems


def _taken_apart(rule: Rule) -> _Read:
    node = read(source=rule.when, schema=VARIABLES)
    try:
        return _Read(rule, node, reach.alternatives(node))
    except TooMuch:
        return _Read(rule, node, None)


def _pointless(one: _Read, found: list[_Read]) -> Problem | None:
    """A rule that never matches, or whose word never counts because others always outweigh it."""
    if one.ways is None:
        return None
    if not one.ways:
        return _warn(one, "can never match: its condition contradicts itself; correct it or remove the rule")
    if one.rule.effect == "deny":
        return None
    refusing = [other for other in found if other.rule.effect == "deny"]
    if named := _always_with(one, refusing):
        return _warn(one, f"can never decide: whenever it matches, {named} refuses, and that outweighs it")
    if one.rule.effect == "allow":
        asking = [other for other in found if other.rule.effect == "ask"]
        if named := _always_with(one, refusing + asking):
            return _warn(one, f"can never decide: whenever it matches, {named} asks or refuses, and that outweighs it")
    return None


def _warn(one: _Read, remedy: str) -> Problem:
    return Problem(where=one.rule.id, field="when", remedy=remedy)


def _always_with(one: _Read, others: list[_Read]) -> str:
    """The rules of which one always matches together with this one, in words; or nothing."""
    assert one.ways is not None
    try:
        touching = [other for other in others if other.ways is None or reach.together(one.ways, other.ways)]
        if not touching or reach.left_over(one.ways, [other.node for other in touching]):
            return ""
    except TooMuch:
        return ""
    ids = [other.rule.id for other in touching]
    return ids[0] if len(ids) == 1 else f"one of {', '.join(ids[:6])}"


def _asked_together(document: Any, found: list[_Read]) -> list[Problem]:
    """Rules that ask different people about the same action: then all of them are asked, which their author may not
    have meant. Each case has an example that was really evaluated."""
    asking = [one for one in found if one.rule.ask is not None and one.ways]
    problems = []
    for one, other in list(combinations(asking, 2))[:MAX_PAIRS]:
        assert one.rule.ask is not None and other.rule.ask is not None
        if {stage.asks_the_same for stage in one.rule.ask.chain()} == {
            stage.asks_the_same for stage in other.rule.ask.chain()
        }:
            continue
        example = _example(document, one, other)
        if example is not None:
            remedy = (
                f"asks {_whom(one)} where {other.rule.id} asks {_whom(other)}{_said(example)}: then all of them have"
                " to approve, each person in one stage; let one of the two ask if that is not meant"
            )
            problems.append(_warn(one, remedy))
    return problems


def _whom(one: _Read) -> str:
    """The groups of its stages: `manager`, or `finance, then controllers`."""
    assert one.rule.ask is not None
    joint = ", then " if one.rule.ask.order == "sequential" else " and "
    return joint.join(" or ".join(stage.groups) for stage in one.rule.ask.chain())


def _example(document: Any, one: _Read, other: _Read) -> dict[str, Any] | None:
    without_totals = {**document, "totals": []}  # which might refuse it for a reason of their own
    with suppress(TooMuch):
        for way in reach.together(one.ways or [], other.ways or [])[:20]:
            values = _values(way)
            verdict = evaluate(document=without_totals, variables=values, counted=_much_else)
            if verdict.need is not None and {one.rule.id, other.rule.id} <= {rule["id"] for rule in verdict.rules}:
                return values
    return None


def _much_else(need: WindowNeed) -> tuple[int, tuple[str, ...]]:
    """As if so much had come before that every rule with a window matches."""
    return MAX_INTEGER // 2, ()


def _values(way: Alternative) -> dict[str, Any]:
    """An action that the facts might be true of; whoever uses it checks."""
    values: dict[str, Any] = {
        name: {"string": "x", "int": 1, "bool": True}[kind] for name, kind in VARIABLES.items()
    } | {"account_standing": "good"}
    for name in {one.name for one in way} - {""}:
        facts = [one for one in way if one.name == name]
        wanted = [value for one in facts if one.op in ("==", "in") and one.holds for value in one.values]
        parts = [str(one.values[0]) for one in facts if one.op in ("startsWith", "contains", "endsWith") and one.holds]
        candidates = [value for value in wanted if all(reach.meets(value, one) for one in facts)]
        if VARIABLES.get(name) == "int":
            candidates = candidates or [max(1, reach.number_range(facts)[0])]
        elif parts:
            candidates = candidates or ["".join(parts)]
        if candidates:
            values[name] = candidates[0]
    return values


def _said(example: dict[str, Any]) -> str:
    amount, currency = example["amount_minor"], example["currency"]
    try:
        return f", such as for {Money(amount, currency)}"
    except ValueError:
        return ""


def _currencies(parsed: PolicyDocument, found: list[_Read]) -> list[str]:
    """Every currency the rules and totals name, in alphabetical order."""
    named = {currency for total in parsed.totals for currency in total.limits}
    for one in found:
        named |= {
            str(value) for way in one.ways or [] for fact in way if fact.name == "currency" for value in fact.values
        }
    return sorted(named)


def _permitting(found: list[_Read]) -> list[_Read]:
    return [one for one in found if one.rule.effect != "deny"]


def _no_limit(parsed: PolicyDocument, found: list[_Read]) -> list[Problem]:
    """A currency that rules let through and a running total has no limit for: nothing in it is ever allowed."""
    problems = []
    for currency in _currencies(parsed, found):
        wanted = reach.fact("currency", "==", currency)
        by = [one.rule.id for one in _permitting(found) if _surely_names(one, currency) and _can(one, wanted)]
        for total in parsed.totals:
            if by and currency not in total.limits:
                remedy = f"has no limit for {currency}, so what {by[0]} lets through is refused all the same; add one"
                problems.append(Problem(where=total.id, field="limits", remedy=remedy))
    return problems


def _surely_names(one: _Read, currency: str) -> bool:
    return any(fact.name == "currency" and currency in fact.values for way in one.ways or [] for fact in way)


def _can(one: _Read, *wanted: list[Alternative]) -> bool:
    """Whether the rule may match where the wanted facts hold; True also where that cannot be told."""
    if one.ways is None:
        return True
    try:
        return bool(reach.together(one.ways, *wanted))
    except TooMuch:
        return True


def _gaps(parsed: PolicyDocument, found: list[_Read]) -> Iterator[Problem]:
    """Amounts and currencies for which no rule allows or asks, and none refuses by name: refused all the same."""
    currencies = _currencies(parsed, found)
    if not currencies or not any({"amount_minor", "currency"} & names(one.node) for one in _permitting(found)):
        return
    for currency in currencies:
        for low, high in _uncovered(currency, found):
            remedy = f"no rule covers {_amounts(low, high, currency)}: that is refused"
            yield Problem(where="policy", field=currency, remedy=remedy)
    others = [reach.fact("currency", "!=", currency) for currency in currencies]
    if not any(_can(one, *others) for one in _permitting(found)):
        remedy = f"no rule covers any currency but {', '.join(currencies)}: every other one is refused"
        yield Problem(where="policy", field="currencies", remedy=remedy)


def _uncovered(currency: str, found: list[_Read]) -> list[tuple[int, int]]:
    """Ranges of amounts (minor units, both ends included) that no rule lets through or refuses by its own words."""
    wanted = reach.fact("currency", "==", currency)
    concerned = [one for one in found if _can(one, wanted)]
    gaps: list[tuple[int, int]] = []
    for low, high in _ranges(concerned):
        here = [wanted, reach.fact("amount_minor", ">=", low), reach.fact("amount_minor", "<=", high)]
        if any(_can(one, *here) for one in _permitting(concerned)) or _refused(here, concerned):
            continue
        if gaps and gaps[-1][1] + 1 == low:
            gaps[-1] = (gaps[-1][0], high)
        else:
            gaps.append((low, high))
    return gaps


def _refused(here: list[list[Alternative]], found: list[_Read]) -> bool:
    """Whether refusing rules cover all of it: then it is meant."""
    try:
        return not reach.left_over(reach.together(*here), [one.node for one in found if one.rule.effect == "deny"])
    except TooMuch:
        return True  # not sure: nothing is claimed


def _ranges(found: Iterable[_Read]) -> list[tuple[int, int]]:
    """The amounts from 1 up, cut wherever a rule compares with one."""
    cuts = {1}
    for one in found:
        for way in one.ways or []:
            for fact in way:
                if fact.name == "amount_minor":
                    cuts |= {int(value) + step for value in fact.values for step in (0, 1)}
    starts = sorted(cut for cut in cuts if 1 <= cut <= MAX_MINOR)
    ends = [start - 1 for start in starts[1:]] + [MAX_MINOR]
    return list(zip(starts, ends, strict=True))


def _amounts(low: int, high: int, currency: str) -> str:
    if high == MAX_MINOR:
        return f"{currency}" if low == 1 else f"amounts of {Money(low, currency)} and more"
    if low == high:
        return f"{Money(low, currency)}"
    return f"amounts from {Money(low, currency)} to {Money(high, currency)}"
