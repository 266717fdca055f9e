"""Reading a rule's condition: the small part of CEL that policies may use, with the type of every comparison checked.

CEL itself accepts far more and stays silent about mistakes: `'a' == 1` is simply false, and a list macro may reuse a
variable's name. So a condition is first read here, by a grammar of comparisons, `in`, `!`, `&&`, `||` and three text
functions; CEL then evaluates the very same text. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from runs.money import MoneyError, currency_code

Kind = Literal["string", "int", "bool"]
MAX_LENGTH = 2000  # characters; a much longer expression would bring the evaluator's whole process down
MAX_DEPTH = 20
MAX_INTEGER = 2**53 - 1  # beyond it numbers compare inexactly
FUNCTIONS = frozenset({"startsWith", "endsWith", "contains"})
OPERATORS = frozenset({"_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"})
MACROS = frozenset({"all", "exists", "exists_one", "map", "filter", "has"})

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'[^'"\\\n\r]*'|"[^'"\\\n\r]*")
    | (?P<number>[0-9][0-9A-Za-z_.]*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark>&&|\|\||==|!=|<=|>=|[<>!()\[\],.])
    )""",
    re.VERBOSE,
)
_COMPARE = frozenset({"==", "!=", "<", "<=", ">", ">="})


class ExpressionError(ValueError):
    """The condition cannot be used; the message says where and what to write instead."""


@dataclass(frozen=True, slots=True)
class Node:
    """`op` is an operator, `name`, `literal`, `list` or a function; `kind` the type of its value."""

    op: str
    kind: Kind
    parts: tuple["Node", ...] = ()
    value: str = ""


def read(*, source: str, schema: Mapping[str, Kind]) -> Node:
    """The tree of a condition over the variables of `schema` (name → type). Raises ExpressionError."""
    if len(source) > MAX_LENGTH:
        raise ExpressionError(f"is {len(source)} characters long; write at most {MAX_LENGTH}, or split the rule")
    node = _Reader(_tokens(source), schema).whole()
    if node.kind != "bool":
        raise ExpressionError("is not a yes-or-no condition; compare the value with something")
    _check_currencies(node)
    if "amount_minor" in names(node) and not _names_currency(node, named=False):
        raise ExpressionError("compares an amount without its currency; write currency == 'USD' && … around it")
    return node


def names(node: Node) -> set[str]:
    """Every variable the condition refers to."""
    if node.op == "name":
        return {node.value}
    return set[str]().union(*(names(part) for part in node.parts))


def _tokens(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position, end = 0, len(source.rstrip())
    while position < end:
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            rest = source[position:end].strip()[:12]
            raise ExpressionError(
                f"has {rest!r}, which conditions cannot use; write comparisons joined by &&, || and !, with texts"
                " in plain quotes"
            )
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


class _Reader:
    """Recursive descent over the tokens, one method a level of precedence."""

    def __init__(self, tokens: list[tuple[str, str]], schema: Mapping[str, Kind]) -> None:
        self._tokens = tokens
        self._schema = schema
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        if not self._tokens:
            raise ExpressionError("is empty; write a condition, or true")
        node = self._either()
        if self._at < len(self._tokens):
            raise ExpressionError(f"has an unexpected {self._text()!r}; join conditions with && or ||")
        return node

    def _text(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else "end"

    def _is(self, mark: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("mark", mark)

    def _take(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise ExpressionError("ends too early; complete the comparison")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, mark: str) -> None:
        if not self._is(mark):
            raise ExpressionError(f"needs {mark!r} where it has {self._text()!r}")
        self._at += 1

    def _joined(self, mark: str) -> Node:
        parts = [self._both() if mark == "||" else self._compared()]
        while self._is(mark):
            self._at += 1
            parts.append(self._both() if mark == "||" else self._compared())
        if len(parts) == 1:
            return parts[0]
        for part in parts:
            _require_bool(part, f"has a part of {mark} that is not a condition; compare it with something")
        return Node(mark, "bool", tuple(parts))

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"is nested deeper than {MAX_DEPTH} levels; split the rule")
        node = self._joined("||")
        self._depth -= 1
        return node

    def _both(self) -> Node:
        return self._joined("&&")

    def _compared(self) -> Node:
        left = self._negated()
        if self._at >= len(self._tokens):
            return left
        group, text = self._tokens[self._at]
        if group == "mark" and text in _COMPARE:
            self._at += 1
            return _comparison(text, left, self._negated())
        if (group, text) == ("name", "in"):
            self._at += 1
            return self._membership(left)
        return left

    def _negated(self) -> Node:
        count = 0
        while self._is("!"):
            self._at += 1
            count += 1
        if count > MAX_DEPTH:
            raise ExpressionError("has too many ! in a row; write one or none")
        node = self._value()
        for _ in range(count):
            _require_bool(node, "has ! before something that is not a condition; write != to compare")
            node = Node("!", "bool", (node,))
        return node

    def _value(self) -> Node:
        group, text = self._take()
        if group == "string":
            return Node("literal", "string", value=text[1:-1])
        if group == "number":
            return _integer(text)
        if (group, text) == ("mark", "("):
            node = self._either()
            self._expect(")")
            return node
        if group != "name":
            raise ExpressionError(f"has an unexpected {text!r}; write a variable, a text in quotes or a whole number")
        if text in ("true", "false"):
            return Node("literal", "bool", value=text)
        return self._called(text)

    def _called(self, name: str) -> Node:
        if name in MACROS or self._is("("):
            raise ExpressionError(f"uses {name}(…), which policies may not; allowed: {_list(FUNCTIONS)}")
        if name not in self._schema:
            raise ExpressionError(f"uses {name}, which is not a variable; there are: {_list(self._schema)}")
        node = Node("name", self._schema[name], value=name)
        if not self._is("."):
            return node
        self._at += 1
        _group, function = self._take()
        if function not in FUNCTIONS:
            raise ExpressionError(f"uses .{function}, which policies may not; allowed: {_list(FUNCTIONS)}")
        self._expect("(")
        argument = self._value()
        self._expect(")")
        if node.kind != "string" or argument.kind != "string":
            raise ExpressionError(f"uses .{function} on something that is not text; it takes a text and a text")
        return Node(function, "bool", (node, argument))

    def _membership(self, left: Node) -> Node:
        self._expect("[")
        items = [self._value()]
        while self._is(","):
            self._at += 1
            items.append(self._value())
        self._expect("]")
        for item in items:
            if item.op != "literal":
                raise ExpressionError("has a list of other things than plain values; list texts or whole numbers")
            _same_kind("in", left, item)
        return Node("in", "bool", (left, *items))


def _list(words: object) -> str:
    return ", ".join(sorted(words))  # type: ignore[call-overload]  # any iterable of text


def _integer(text: str) -> Node:
    if not re.fullmatch(r"0|[1-9][0-9]*", text) or int(text) > MAX_INTEGER:
        raise ExpressionError(f"has {text}, which is not a whole number of minor units; write digits only")
    return Node("literal", "int", value=text)


def _require_bool(node: Node, message: str) -> None:
    if node.kind != "bool":
        raise ExpressionError(message)


def _show(node: Node) -> str:
    kinds = {"string": "text", "int": "a whole number", "bool": "yes or no"}
    return f"{node.value or 'a condition'} ({kinds[node.kind]})"


def _same_kind(operator: str, left: Node, right: Node) -> None:
    if left.kind != right.kind:
        raise ExpressionError(f"compares {_show(left)} with {_show(right)} by {operator}; give both the same type")


def _comparison(operator: str, left: Node, right: Node) -> Node:
    _same_kind(operator, left, right)
    if left.kind == "bool" and operator not in ("==", "!="):
        raise ExpressionError(f"orders conditions by {operator}; use == or !=")
    if {left.op, right.op} == {"literal"}:
        raise ExpressionError(f"compares {_show(left)} with {_show(right)}, which never changes; name a variable")
    return Node(operator, "bool", (left, right))


def _check_currencies(node: Node) -> None:
    """A mistyped currency would silently never match."""
    if any(part.op == "name" and part.value == "currency" for part in node.parts):
        for part in node.parts:
            try:
                known = part.op != "literal" or currency_code(part.value) == part.value
            except MoneyError:
                known = False
            if not known:
                raise ExpressionError(f"compares currency with {part.value!r}; give an ISO 4217 code such as 'USD'")
    for part in node.parts:
        _check_currencies(part)


def _all_of(node: Node, negated: bool) -> bool:
    """Whether every part must hold: `a && b`, and `!(a || b)` as well."""
    return node.op == ("||" if negated else "&&")


def _requires_currency(node: Node, *, negated: bool = False) -> bool:
    """Whether the condition (or its opposite, when negated) can hold for one named currency only.

    An either-or of currencies is not one: the same number of minor units is worth something else in each.
    """
    if node.op == "!":
        return _requires_currency(node.parts[0], negated=not negated)
    if node.op in ("&&", "||"):
        return _all_of(node, negated) and any(_requires_currency(part, negated=negated) for part in node.parts)
    return node.op == ("!=" if negated else "==") and {"currency", "literal"} == {
        part.value if part.op == "name" else part.op for part in node.parts
    }


def _names_currency(node: Node, *, named: bool, negated: bool = False) -> bool:
    """Whether every mention of the amount counts only where one currency is required beside it."""
    if node.op == "name":
        return named or node.value != "amount_minor"
    if node.op == "!":
        return _names_currency(node.parts[0], named=named, negated=not negated)
    if _all_of(node, negated):
        named = named or any(_requires_currency(part, negated=negated) for part in node.parts)
    return all(_names_currency(part, named=named, negated=negated) for part in node.parts)
