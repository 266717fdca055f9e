"""A condition in words: `currency == 'USD' && amount_minor > 100000` reads "the currency is USD and the amount is above
$1,000.00 USD". Pure; a condition that cannot be read stands as it is written."""

from approvals.expressions import ExpressionError, Node, read
from approvals.rules import VARIABLES
from runs.money import Money, MoneyError
from runs.texts import one_line

NAMES = {
    "tool": "the tool",
    "workflow": "the workflow",
    "step": "the step",
    "account": "the account",
    "account_standing": "the account's standing",
    "currency": "the currency",
    "month": "the month",
    "agent": "the agent",
    "ticket": "the ticket",
    "incident": "the incident",
    "invoice_status": "the invoice's status",
    "reason": "the reason",
    "amount_minor": "the amount",
}
TRUTHS = {"incident_final": ("the incident report is final", "the incident report is not final")}
COMPARED = {"==": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least"}
TEXTS = {"startsWith": "starts with", "endsWith": "ends with", "contains": "contains"}
NOT_TEXTS = {"startsWith": "does not start with", "endsWith": "does not end with", "contains": "does not contain"}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def in_words(*, source: str) -> str:
    """The condition as a phrase; "always" and "never" for true and false."""
    try:
        node = read(source=source, schema=VARIABLES)
    except ExpressionError:
        return source
    return _phrase(node, currency="", top=True)


def _phrase(node: Node, *, currency: str, top: bool = False) -> str:
    if node.op in ("&&", "||"):
        if node.op == "&&":
            currency = next((found for part in node.parts if (found := _currency(part))), currency)
        parts = [_phrase(part, currency=currency) for part in node.parts]
        joined = (" and " if node.op == "&&" else " or ").join(parts)
        return joined if top else f"({joined})"
    if node.op == "!":
        return _opposite(node.parts[0], currency=currency)
    if node.op == "literal":
        return {"true": "always", "false": "never"}.get(node.value, node.value)
    if node.op == "name":
        return TRUTHS.get(node.value, (node.value, ""))[0]
    return _compared(node, currency=currency, words=TEXTS)


def _opposite(node: Node, *, currency: str) -> str:
    if node.op == "name" and node.value in TRUTHS:
        return TRUTHS[node.value][1]
    if node.op in NOT_TEXTS:
        return _compared(node, currency=currency, words=NOT_TEXTS)
    if node.op == "in":
        return f"{_value(node.parts[0], currency)} is none of {_listed(node.parts[1:], currency)}"
    return f"not ({_phrase(node, currency=currency, top=True)})"


def _compared(node: Node, *, currency: str, words: dict[str, str]) -> str:
    left, *rest = node.parts
    if node.op in words:
        return f"{_value(left, currency)} {words[node.op]} {_value(rest[0], currency)}"
    if node.op == "in":
        return f"{_value(left, currency)} is one of {_listed(tuple(rest), currency)}"
    op, right = node.op, rest[0]
    if left.op == "literal":
        op, left, right = _TURNED[op], right, left
    if left.kind == "bool":
        return f"({_phrase(left, currency=currency)}) {COMPARED[op]} ({_phrase(right, currency=currency)})"
    spoken = _value(right, currency, amount=left.value == "amount_minor")
    return f"{_value(left, currency)} {COMPARED[op]} {spoken}"


def _listed(parts: tuple[Node, ...], currency: str) -> str:
    return ", ".join(_value(part, currency) for part in parts)


def _value(node: Node, currency: str, *, amount: bool = False) -> str:
    if node.op == "name":
        return NAMES.get(node.value, node.value)
    if node.kind == "int":
        return _money(node.value, currency) if amount else node.value
    plain = node.value.replace("_", "").replace("-", "").isalnum()
    return node.value if plain else f"“{one_line(text=node.value, limit=120)}”"


def _money(minor: str, currency: str) -> str:
    try:
        return str(Money(int(minor), currency))
    except MoneyError:
        return f"{minor} minor units"


def _currency(node: Node) -> str:
    """The currency that the comparison requires, or nothing."""
    values = {part.op: part.value for part in node.parts}
    return values["literal"] if node.op == "==" and values.get("name") == "currency" and "literal" in values else ""
