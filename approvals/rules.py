"""What a policy document is, and whether one may be published. Pure: groups are checked where it is published.

A document holds rules (CEL conditions over `VARIABLES`) and running totals:

    {"rules": [{"id", "effect": "allow" | "ask" | "deny", "text", "when", "ask": {...} for ask only}],
     "totals": [{"id", "text", "key": [variables], "amount": "amount_minor", "limits": {"USD": "2000000"}}]}

Amounts are whole minor units; limits are written as text.
"""

import unicodedata
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import cel
from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from approvals import confirming, expressions
from runs.canonical import nfc
from runs.money import CurrencyText, MinorText, Strict

VARIABLES: dict[str, expressions.Kind] = {
    "tool": "string",
    "workflow": "string",
    "step": "string",
    "account": "string",
    "account_standing": "string",
    "currency": "string",
    "month": "string",  # 2026-11
    "ticket": "string",
    "incident": "string",
    "invoice_status": "string",
    "reason": "string",
    "amount_minor": "int",
    "incident_final": "bool",
}
MAX_RULES = 100


def _plain(value: str) -> str:
    if value.strip() == "" or any(unicodedata.category(mark) in ("Cc", "Cs") for mark in value):
        raise ValueError("write one line of readable text")
    return value


def _condition(value: str) -> str:
    """Several lines are welcome; what no database keeps, or nobody sees, is not."""
    if any(unicodedata.category(mark) in ("Cc", "Cs") and mark not in "\n\r\t" for mark in value):
        raise ValueError("has a character that nobody can read; write it without")
    return value


Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=300), AfterValidator(_plain)]


class Ask(Strict):
    """Who is asked: members of one group, how many of them, until when, how long their yes may be used, and what a yes
    takes beyond the click (see `confirming`)."""

    group: Annotated[str, StringConstraints(min_length=1, max_length=150), AfterValidator(_plain)]
    quorum: Annotated[int, Field(ge=1, le=10)]
    respond_within_minutes: Annotated[int, Field(ge=1, le=43_200)]
    valid_for_minutes: Annotated[int, Field(ge=1, le=10_080)]
    # a click is left out of what is stored, as it was before there was anything else
    confirm: Annotated[confirming.Level, Field(exclude_if=lambda level: level == confirming.CLICK)] = confirming.CLICK


class Rule(Strict):
    id: Id
    effect: Literal["allow", "ask", "deny"]
    text: Text
    when: Annotated[str, StringConstraints(min_length=1, max_length=expressions.MAX_LENGTH), AfterValidator(_condition)]
    ask: Ask | None = None


class Total(Strict):
    """A running total: one `Allowance` for each combination of the `key` variables, limited by currency."""

    id: Id
    text: Text
    key: Annotated[list[str], Field(min_length=1, max_length=6)]
    amount: Literal["amount_minor"]
    limits: Annotated[dict[CurrencyText, MinorText], Field(min_length=1)]


class PolicyDocument(Strict):
    """`policy` is the slug of the policy it belongs to, written when published; it names the running totals."""

    policy: str = ""
    rules: Annotated[list[Rule], Field(min_length=1, max_length=MAX_RULES)]
    totals: Annotated[list[Total], Field(max_length=20)] = Field(default_factory=list)

    def stored(self, *, policy: str) -> dict[str, Any]:
        """The form that is stored, compared and evaluated: JSON-like, texts in NFC, nothing left implicit."""
        plain: dict[str, Any] = nfc({**self.model_dump(mode="json", exclude_none=True), "policy": policy})
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a document cannot be published: `where` the rule's id (or "policy"), `field`, and what to do about it."""

    where: str
    field: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}, {self.field}: {self.remedy}"


def validate(*, document: Any) -> list[Problem]:
    """Everything wrong with a document that can be seen without a database; an empty list when it may be published."""
    try:
        parsed = PolicyDocument.model_validate(document)
    except ValidationError as error:
        return [_shape_problem(document, dict(found)) for found in error.errors(include_url=False)]
    problems = _repeated(parsed)
    for rule in parsed.rules:
        problems += _rule_problems(rule)
    for total in parsed.totals:
        problems += _total_problems(total)
    return problems


def compiled(*, source: str) -> Any:
    """The CEL program of a checked condition. Raises `expressions.ExpressionError`; the length is bounded before."""
    expressions.read(source=source, schema=VARIABLES)
    try:
        program = cel.compile(source)
    except ValueError as error:
        raise expressions.ExpressionError(f"is not valid CEL ({error}); check its punctuation") from error
    # a second reading by CEL itself, should its grammar ever differ from ours
    strange = set(program.variables()) - set(VARIABLES)
    strange |= set(program.functions()) - expressions.OPERATORS - expressions.FUNCTIONS
    if strange:
        raise expressions.ExpressionError(f"uses {', '.join(sorted(strange))}, which policies may not")
    return program


def _shape_problem(document: Any, error: dict[str, Any]) -> Problem:
    """Translate one of pydantic's errors into a rule's id, a field and a remedy."""
    path = list(error["loc"])
    where = "policy"
    if len(path) >= 2 and isinstance(path[1], int):
        section = path.pop(0)
        number = path.pop(0)
        where = f"{str(section).rstrip('s')} {number + 1}"
        entry = document[section][number]
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]:
            where = entry["id"][:60]
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "missing":
        message = "is missing; add it"
    if error["type"] == "extra_forbidden":
        message = "is not a field of policies; remove it"
    return Problem(where=where, field=".".join(str(part) for part in path) or "document", remedy=message)


def _repeated(document: PolicyDocument) -> list[Problem]:
    seen: set[str] = set()
    problems = []
    for name in [*(rule.id for rule in document.rules), *(total.id for total in document.totals)]:
        if name in seen:
            problems.append(Problem(where=name, field="id", remedy="is used twice; give each its own"))
        seen.add(name)
    return problems


def _rule_problems(rule: Rule) -> list[Problem]:
    problems = []
    if rule.effect == "ask" and rule.ask is None:
        problems.append(Problem(where=rule.id, field="ask", remedy="is missing; name the group, quorum and times"))
    if rule.effect != "ask" and rule.ask is not None:
        problems.append(Problem(where=rule.id, field="ask", remedy="belongs to rules that ask; remove it"))
    try:
        compiled(source=rule.when)
    except expressions.ExpressionError as error:
        problems.append(Problem(where=rule.id, field="when", remedy=str(error)))
    return problems


def _total_problems(total: Total) -> list[Problem]:
    problems = []
    for name in total.key:
        if VARIABLES.get(name) != "string":
            known = ", ".join(sorted(key for key, kind in VARIABLES.items() if kind == "string"))
            remedy = f"has {name[:60]}, which is not a text variable; there are: {known}"
            problems.append(Problem(where=total.id, field="key", remedy=remedy))
    if "currency" not in total.key:
        remedy = "must contain currency: amounts of different currencies are never added up"
        problems.append(Problem(where=total.id, field="key", remedy=remedy))
    if len(set(total.key)) != len(total.key):
        problems.append(Problem(where=total.id, field="key", remedy="names a variable twice; name each once"))
    return problems
