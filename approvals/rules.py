"""What a policy document is, and whether one may be published. Pure: groups are checked where it is published.

A document holds rules (CEL conditions over `VARIABLES`) and running totals:

    {"rules": [{"id", "effect": "allow" | "ask" | "deny", "text", "when", "ask": {...} for ask only, see `Ask`,
                "window": {"by": "account", "hours": 720, "above": {"USD": "100000"}} where sums count}],
     "totals": [{"id", "text", "key": [variables], "amount": "amount_minor", "limits": {"USD": "2000000"}}],
     "standing": {"group", "most": {"USD": "500000"}, "alone_up_to": {"USD": "200000"}, "longest_days"}}

`standing` says how far approvals may be given beforehand; they answer only rules whose `ask` says `"standing": true`.

Amounts are whole minor units; limits are written as text.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from approvals import confirming, expressions
from approvals.cel_alone import cel
from approvals.requirement import ANYBODY, Clock, Person, StageNeed, WhenLate, of_one_group
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
    "agent": "string",  # whose run it is, such as agent:service-credit
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


GroupName = Annotated[str, StringConstraints(min_length=1, max_length=150), AfterValidator(_plain)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_plain)]
People = Annotated[int, Field(ge=1, le=10)]
Minutes = Annotated[int, Field(ge=1, le=43_200)]


class PersonText(Strict):
    """What a person must be to answer, by what is set about them; nothing set about them meets nothing."""

    within_limit: bool | None = None
    team: Label | None = None
    region: Label | None = None


class StageText(Strict):
    """One stage: who is asked, how many have to agree, and how many of them end it by saying no (one, if not said)."""

    name: Label
    groups: Annotated[list[GroupName], Field(min_length=1, max_length=6)]
    quorum: People
    reject_at: People | None = None
    person: PersonText | None = None

    def need(self) -> StageNeed:
        person = self.person or PersonText()
        return StageNeed(
            name=self.name,
            groups=tuple(sorted(set(self.groups))),
            quorum=self.quorum,
            reject_at=self.reject_at or 1,
            person=Person(
                within_limit=bool(person.within_limit), team=person.team or "", region=person.region or ""
            ),
        )  # fmt: skip


class EscalationText(Strict):
    after_minutes: Minutes
    group: GroupName


class Ask(Strict):
    """Who is asked, until when, and how long their yes may be used.

    Either `group` and `quorum`: that many members of one group. Or `stages`, in order or all at once. Times are elapsed
    time unless `clock` says working; late is what `when_late` says, and never a yes.
    """

    group: GroupName | None = None
    quorum: People | None = None
    order: Literal["sequential", "parallel"] | None = None
    stages: Annotated[list[StageText], Field(min_length=1, max_length=6)] | None = None
    respond_within_minutes: Minutes
    valid_for_minutes: Annotated[int, Field(ge=1, le=10_080)]
    # a click is left out of what is stored, as it was before there was anything else
    confirm: Annotated[confirming.Level, Field(exclude_if=lambda level: level == confirming.CLICK)] = confirming.CLICK
    clock: Clock | None = None
    remind_after_minutes: Annotated[int, Field(ge=5, le=43_200)] | None = None
    escalate: Annotated[list[EscalationText], Field(min_length=1, max_length=5)] | None = None
    when_late: WhenLate | None = None
    standing: bool | None = None  # whether an approval that was given beforehand may answer

    def chain(self) -> tuple[StageNeed, ...]:
        """The stages it asks, one for a group by itself; none where it names nobody."""
        if self.stages:
            return tuple(stage.need() for stage in self.stages)
        if self.group is None or self.quorum is None:
            return ()
        return (StageNeed(name=self.group, groups=(self.group,), quorum=self.quorum),)


class Window(Strict):
    """The rule matches only where its condition holds and the sum is above a limit: this amount with all that was
    proposed before it for the same `by` within so many hours and may still happen, or has."""

    by: Literal["account", "ticket", "incident", "agent"]
    hours: Annotated[int, Field(ge=1, le=8_784)]
    above: Annotated[dict[CurrencyText, MinorText], Field(min_length=1)]


class Rule(Strict):
    id: Id
    effect: Literal["allow", "ask", "deny"]
    text: Text
    when: Annotated[str, StringConstraints(min_length=1, max_length=expressions.MAX_LENGTH), AfterValidator(_condition)]
    ask: Ask | None = None
    window: Window | None = None


class Total(Strict):
    """A running total: one `Allowance` for each combination of the `key` variables, limited by currency."""

    id: Id
    text: Text
    key: Annotated[list[str], Field(min_length=1, max_length=6)]
    amount: Literal["amount_minor"]
    limits: Annotated[dict[CurrencyText, MinorText], Field(min_length=1)]


class Standing(Strict):
    """How far members of `group` may approve beforehand: the most of one standing approval, what one of them may grant
    alone (beyond it a second person is needed), both in all of a period, and for how long."""

    group: Annotated[str, StringConstraints(min_length=1, max_length=150), AfterValidator(_plain)]
    most: Annotated[dict[CurrencyText, MinorText], Field(min_length=1)]
    alone_up_to: dict[CurrencyText, MinorText] = Field(default_factory=dict)
    longest_days: Annotated[int, Field(ge=1, le=366)]


class PolicyDocument(Strict):
    """`policy` is the slug of the policy it belongs to, written when published; it names the running totals."""

    policy: str = ""
    rules: Annotated[list[Rule], Field(min_length=1, max_length=MAX_RULES)]
    totals: Annotated[list[Total], Field(max_length=20)] = Field(default_factory=list)
    standing: Standing | None = None

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
    problems += _standing_problems(parsed)
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
    plain = _PLAIN.get(error["type"])
    message = plain.format(**error.get("ctx", {})) if plain else str(error["msg"]).removeprefix("Value error, ")
    # people count from one, as in "stage 1"
    named = [str(part + 1 if isinstance(part, int) else part) for part in path]
    return Problem(where=where, field=".".join(named) or "document", remedy=message)


_PLAIN = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not a field of policies; remove it",
    "int_type": "is not a whole number; write digits alone",
    "string_too_short": "is empty; fill it in",
    "string_too_long": "is longer than {max_length} characters; shorten it",
    "too_short": "is empty; name at least one",
    "too_long": "has more than {max_length}; leave some out",
    "greater_than_equal": "is less than {ge}; write {ge} or more",
    "less_than_equal": "is more than {le}; write {le} or less",
}


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
    if rule.ask is not None:
        problems += [Problem(where=rule.id, field=name, remedy=remedy) for name, remedy in _ask_problems(rule.ask)]
    if rule.effect == "allow" and rule.window is not None:
        remedy = "would allow more the more there is; sums belong to rules that ask or refuse"
        problems.append(Problem(where=rule.id, field="window", remedy=remedy))
    try:
        compiled(source=rule.when)
    except expressions.ExpressionError as error:
        problems.append(Problem(where=rule.id, field="when", remedy=str(error)))
    return problems


def _ask_problems(ask: Ask) -> Iterator[tuple[str, str]]:
    """(field, remedy) of what a single field cannot tell."""
    if ask.stages is None:
        for name in ("group", "quorum"):
            if getattr(ask, name) is None:
                yield f"ask.{name}", "is missing; add it"
        if ask.order is not None:
            yield "ask.order", "belongs to stages; remove it"
    else:
        for name in ("group", "quorum"):
            if getattr(ask, name) is not None:
                yield f"ask.{name}", "is said by each stage; remove it"
        if len(ask.stages) > 1 and ask.order is None:
            yield "ask.order", "is missing; write sequential or parallel"
        if len({stage.name for stage in ask.stages}) != len(ask.stages):
            yield "ask.stages", "have a name twice; give each its own"
    if ask.remind_after_minutes is not None and ask.remind_after_minutes >= ask.respond_within_minutes:
        yield "ask.remind_after_minutes", "is not before the time to answer ends; remind earlier"
    after = [step.after_minutes for step in ask.escalate or []]
    if after != sorted(set(after)) or (after and after[-1] >= ask.respond_within_minutes):
        yield "ask.escalate", "has times that do not grow, or do not come before the time to answer ends; mend them"


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


def _standing_problems(document: PolicyDocument) -> list[Problem]:
    terms, problems = document.standing, []
    opened = [rule for rule in document.rules if rule.ask is not None and rule.ask.standing]
    for rule in opened:
        assert rule.ask is not None
        if terms is None:
            remedy = "is true, but the policy has no section standing that says how far; add it, or leave this out"
            problems.append(Problem(where=rule.id, field="ask.standing", remedy=remedy))
        elif rule.ask.confirm != confirming.CLICK:
            takes = confirming.words(level=rule.ask.confirm, money=None)
            remedy = (
                f"is true, but a yes to this rule takes {takes}, which nobody gives beforehand; leave one of them out"
            )
            problems.append(Problem(where=rule.id, field="ask.standing", remedy=remedy))
        elif len(chain := rule.ask.chain()) > 1 or any(one.person != ANYBODY for one in chain):
            remedy = "is true, but only one stage without conditions on persons is answered beforehand; leave this out"
            problems.append(Problem(where=rule.id, field="ask.standing", remedy=remedy))
        elif chain and not of_one_group(stages=chain, group=terms.group):
            asked = " or ".join(chain[0].groups)
            remedy = f"lets {terms.group} approve beforehand what is asked of {asked}; name one group in both"
            problems.append(Problem(where=rule.id, field="ask.standing", remedy=remedy))
    if terms is None:
        return problems
    if not opened:
        remedy = "can never be used: no rule that asks says that an approval given beforehand may answer it"
        problems.append(Problem(where="standing", field="group", remedy=remedy))
    for currency, alone in terms.alone_up_to.items():
        if currency not in terms.most or int(alone) > int(terms.most[currency]):
            remedy = f"lets one person grant more {currency} than may be granted at all; lower it"
            problems.append(Problem(where="standing", field="alone_up_to", remedy=remedy))
    return problems
