"""What a condition can be true of, worked out from its text: whether a rule can ever match, and whether other rules
always match with it. Pure.

Conditions are taken apart into alternatives, each a list of facts that must hold together; a fact is a comparison of
one variable with plain values. Whatever is not understood (a comparison of two variables, say) counts as possible, and
what would take too long raises `TooMuch`: so what is said here to be impossible really is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from approvals.expressions import MAX_INTEGER, Node

LIMIT = 150  # alternatives at once; beyond it nothing is claimed

_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_TEXT = ("startsWith", "endsWith", "contains")


class TooMuch(Exception):
    """The conditions have too many alternatives to be sure of anything."""


@dataclass(frozen=True, slots=True)
class Fact:
    """`name op values` that must hold (or, not `holds`, must not); `name` is "" for what is not understood, kept as its
    node so that it can still contradict itself."""

    name: str
    op: str
    values: tuple[str | int | bool, ...]
    holds: bool = True
    node: Node | None = None


Alternative = frozenset[Fact]


def alternatives(node: Node, *, negated: bool = False) -> list[Alternative]:
    """Every way in which the condition (or its opposite) can hold, those that contradict themselves left out."""
    if node.op == "!":
        return alternatives(node.parts[0], negated=not negated)
    if node.op in ("&&", "||"):
        found = [alternatives(part, negated=negated) for part in node.parts]
        return _all(found) if (node.op == "&&") is not negated else _any(found)
    if node.op in ("==", "!=") and all(part.kind == "bool" for part in node.parts):
        same = (node.op == "==") is not negated
        left, right = node.parts
        both = _all([alternatives(left), alternatives(right, negated=not same)])
        neither = _all([alternatives(left, negated=True), alternatives(right, negated=same)])
        return _any([both, neither])
    if node.op == "literal" and node.kind == "bool":
        return [frozenset()] if (node.value == "true") is not negated else []
    return _possible([frozenset({_fact(node, holds=not negated)})])


def together(*several: list[Alternative]) -> list[Alternative]:
    """The ways in which all of them hold at once; none when they never do."""
    return _all(list(several))


def left_over(ways: list[Alternative], others: Iterable[Node]) -> list[Alternative]:
    """What of `ways` none of the other conditions covers; empty when one of them always holds as well."""
    for other in others:
        holding = alternatives(other)
        failing = alternatives(other, negated=True)
        kept: list[Alternative] = []
        for way in ways:
            # a condition that cannot hold here takes nothing away: do not take the way apart for it
            kept += [way] if not _all([[way], holding]) else _all([[way], failing])
            if len(kept) > LIMIT:
                raise TooMuch
        ways = kept
    return ways


def fact(name: str, op: str, value: str | int | bool) -> list[Alternative]:
    """One comparison as a condition of its own, to put beside others."""
    return [frozenset({Fact(name, op, (value,))})]


def _any(several: list[list[Alternative]]) -> list[Alternative]:
    found = list(dict.fromkeys(way for ways in several for way in ways))
    if len(found) > LIMIT:
        raise TooMuch
    return found


def _all(several: list[list[Alternative]]) -> list[Alternative]:
    found: list[Alternative] = [frozenset()]
    for ways in several:
        if len(found) * len(ways) > LIMIT * 4:
            raise TooMuch
        found = _possible([before | way for before in found for way in ways])
    return _any([found])


def _possible(ways: list[Alternative]) -> list[Alternative]:
    return [way for way in ways if possible(way)]


def _plain(node: Node) -> str | int | bool:
    if node.kind == "int":
        return int(node.value)
    return node.value == "true" if node.kind == "bool" else node.value


def _fact(node: Node, *, holds: bool) -> Fact:
    """The comparison as a fact about one variable, or one that is not understood."""
    unknown = Fact("", node.op, (), holds, node)
    if node.op == "name":
        return Fact(node.value, "==", (holds,))
    first, rest = (node.parts[0], node.parts[1:]) if node.parts else (node, ())
    if node.op == "in" or node.op in _TEXT:
        if first.op == "name" and all(part.op == "literal" for part in rest):
            return Fact(first.value, node.op, tuple(_plain(part) for part in rest), holds)
        return unknown
    if node.op not in _OPPOSITE or len(node.parts) != 2:
        return unknown
    left, right = node.parts
    op = node.op if holds else _OPPOSITE[node.op]
    if left.op == "name" and right.op == "literal":
        return Fact(left.value, op, (_plain(right),))
    if left.op == "literal" and right.op == "name":
        return Fact(right.value, _TURNED[op], (_plain(left),))
    return unknown


def possible(way: Alternative) -> bool:
    """Whether all facts can be true together, as far as that can be told; False is certain."""
    by_name: dict[str, list[Fact]] = {}
    for one in way:
        by_name.setdefault(one.name, []).append(one)
    unclear = by_name.pop("", [])
    opposites = {(one.node, not one.holds) for one in unclear}
    if any((one.node, one.holds) in opposites for one in unclear):
        return False
    return all(_of_one(facts) for facts in by_name.values())


def meets(value: str | int | bool, one: Fact) -> bool:
    """Whether a value of the fact's variable makes it true."""
    return _compare(value, one.op, one.values) is one.holds


def _compare(value: str | int | bool, op: str, values: tuple[str | int | bool, ...]) -> bool:
    if op == "in":
        return value in values
    other = values[0]
    if isinstance(value, str) and isinstance(other, str):
        if op in _TEXT:
            return {"startsWith": value.startswith, "endsWith": value.endswith, "contains": value.__contains__}[op](
                other
            )
        return _ordered(op, (value > other) - (value < other))
    return _ordered(op, (int(value) > int(other)) - (int(value) < int(other)))


def _ordered(op: str, sign: int) -> bool:
    """`sign` is -1, 0 or 1: smaller, equal, greater."""
    return {"==": sign == 0, "!=": sign != 0, "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[op]


def _of_one(facts: list[Fact]) -> bool:
    """Whether one variable can have a value that meets all its facts."""
    candidates = _candidates(facts)
    if candidates is not None:
        return any(all(meets(value, one) for one in facts) for value in candidates)
    kind = type(facts[0].values[0])
    if kind is int:
        return _whole_number(facts)
    return _text(facts) if kind is str else True


def _candidates(facts: list[Fact]) -> list[str | int | bool] | None:
    """The few values that come into question, or None for many."""
    for one in facts:
        if one.op in ("==", "in") and one.holds:
            return list(one.values)
    return [True, False] if isinstance(facts[0].values[0], bool) else None


def _whole_number(facts: list[Fact]) -> bool:
    low, high = number_range(facts)
    left_out = {value for one in facts for value in one.values if one.op == "!=" or (one.op == "in" and not one.holds)}
    if high - low > len(left_out):
        return True
    return any(value not in left_out for value in range(low, high + 1))


def number_range(facts: Iterable[Fact]) -> tuple[int, int]:
    """The smallest and the largest whole number that the orderings among the facts leave."""
    low, high = -MAX_INTEGER, MAX_INTEGER
    for one in facts:
        value = one.values[0]
        if not isinstance(value, int):
            continue
        if one.op in (">", ">="):
            low = max(low, value + (one.op == ">"))
        elif one.op in ("<", "<="):
            high = min(high, value - (one.op == "<"))
    return low, high


def _text(facts: list[Fact]) -> bool:
    """Texts without a fixed value: only what certainly contradicts itself is ruled out."""
    texts = [(one.op, str(one.values[0]), one.holds) for one in facts if one.op != "in"]
    lowest = max((text for op, text, _ in texts if op in (">", ">=")), default=None)
    highest = min((text for op, text, _ in texts if op in ("<", "<=")), default=None)
    if lowest is not None and highest is not None:
        if lowest > highest:
            return False
        if lowest == highest:
            return all(meets(lowest, one) for one in facts)
    yes = [(op, text) for op, text, holds in texts if op in _TEXT and holds]
    no = [(op, text) for op, text, holds in texts if op in _TEXT and not holds]
    for place in ("startsWith", "endsWith"):
        ends = sorted((text for op, text in yes if op == place), key=len)
        if any(not _compare(ends[-1], place, (end,)) for end in ends):
            return False
    return not any(
        _compare(text, unwanted, (part,)) for op, text in yes for unwanted, part in no if unwanted in (op, "contains")
    )
