"""Asking a policy about one action. Pure, and never raises: whatever cannot be evaluated is denied.

All rules are evaluated. Deny outweighs ask, ask outweighs allow; what several asks require adds up; no matching rule
denies. Any error, and any variable a rule refers to that is absent or of another type, denies, because CEL itself
would let `missing == 'x' || true` pass.
"""

import datetime as dt
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from pydantic import ValidationError

from approvals import confirming
from approvals import rules as documents
from approvals.expressions import MAX_INTEGER, ExpressionError
from approvals.requirement import Answered, Escalation, Requirement, StageNeed, enough, of_one_group

LABEL_LENGTH = 300
KEY_LENGTH = 300
_TYPES: dict[str, type] = {"string": str, "int": int, "bool": bool}
# everything CEL is known to raise while evaluating
_CEL_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalNeed:
    """Room the action needs in a running total, in minor units. `key` is the `Allowance`'s."""

    key: str
    label: str
    currency: str
    limit_minor: int
    amount_minor: int
    count_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowNeed:
    """What has to be known: the sum for the same value of `by`, in the currency, of so many hours before."""

    by: str
    value: str
    currency: str
    hours: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSum:
    """What a rule counted together, in minor units: `others` besides the action itself, `proposals` their ids."""

    rule: str
    need: WindowNeed
    above_minor: int
    amount_minor: int
    others_minor: int
    proposals: tuple[str, ...]

    @property
    def total_minor(self) -> int:
        return self.others_minor + self.amount_minor

    @property
    def matches(self) -> bool:
        return self.total_minor > self.above_minor


# the sum of the other amounts in minor units, and the ids of their proposals
Counted = Callable[[WindowNeed], tuple[int, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says: `rules` are those that decided ([{id, text}]); `need` is who has to say yes, set for ask
    only; `code` and `text` say why for deny only."""

    effect: Literal["allow", "ask", "deny"]
    rules: list[dict[str, str]] = field(default_factory=list)
    need: Requirement | None = None
    totals: list[TotalNeed] = field(default_factory=list)
    windows: list[WindowSum] = field(default_factory=list)
    code: str = ""
    text: str = ""


class _Denied(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.verdict = Verdict(effect="deny", code=code, text=text)


def evaluate(*, document: Mapping[str, Any], variables: Mapping[str, Any], counted: Counted | None = None) -> Verdict:
    """The verdict on an action described by `variables` (see `rules.VARIABLES`; amounts in minor units). `counted`
    tells what else counts in a rule's window; without it such a rule, where its condition holds, denies."""
    try:
        parsed = _parsed(_as_text(document))
        met = [rule for rule in parsed.rules if _matches(rule, variables)]
        windows = {rule.id: _window(rule, variables, counted) for rule in met if rule.window is not None}
        matched = [rule for rule in met if rule.id not in windows or windows[rule.id].matches]
        return replace(_weigh(parsed, matched, variables), windows=list(windows.values()))
    except (ValidationError, _Unreadable):
        return Verdict(effect="deny", code="policy_unreadable", text="The policy cannot be read: nothing is allowed.")
    except _Denied as denied:
        return denied.verdict


def condition_holds(*, condition: str, variables: Mapping[str, Any]) -> bool | None:
    """Whether one condition holds; None where that cannot be told, which is never a yes."""
    try:
        return _holds(condition, variables, of="It")
    except _Denied:
        return None


def satisfied(*, decision_kind: str, asked: Sequence[Answered], in_order: bool, confirm: str, verdict: Verdict) -> bool:
    """Whether a yes already given is enough for a newer verdict.

    `decision_kind` is "policy" or "people"; `asked` are the stages of the request it was given on, with the yes of
    people still entitled, and `in_order` whether they were asked one after the other; `confirm` is what a yes took.
    """
    if verdict.effect == "allow":
        return True
    if verdict.need is None or decision_kind != "people":
        return False
    if not confirming.enough(given=confirm, needed=verdict.need.confirm):
        return False
    return enough(asked=asked, in_order=in_order, wanted=verdict.need)


class _Unreadable(Exception):
    pass


def _as_text(document: Mapping[str, Any]) -> str:
    try:
        return json.dumps(document, sort_keys=True)
    except (TypeError, ValueError) as problem:
        raise _Unreadable from problem


@lru_cache(maxsize=256)
def _parsed(text: str) -> documents.PolicyDocument:
    return documents.PolicyDocument.model_validate(json.loads(text))


@lru_cache(maxsize=1024)
def _program(source: str) -> Any:
    return documents.compiled(source=source)


def _matches(rule: documents.Rule, variables: Mapping[str, Any]) -> bool:
    return _holds(rule.when, variables, of=f"Rule {rule.id}")


def _holds(condition: str, variables: Mapping[str, Any], *, of: str) -> bool:
    try:
        program = _program(condition)
    except ExpressionError as error:
        raise _Denied("rule_error", f"{of} cannot be used: its condition {error}.") from error
    known = {name: _value(name, variables, of=of) for name in program.variables()}
    try:
        result = program.execute(known)
    except _CEL_ERRORS as error:
        raise _Denied("rule_error", f"{of} could not be evaluated ({type(error).__name__}).") from error
    if result is not True and result is not False:
        raise _Denied("rule_error", f"{of} gave neither yes nor no.")
    return bool(result)


def _value(name: str, variables: Mapping[str, Any], *, of: str) -> str | int | bool:
    """The variable's value, exactly of its declared type; an absent one denies."""
    value = variables.get(name)
    if value is None:
        raise _Denied("variable_missing", f"{of} needs {name}, which is not known for this action.")
    if type(value) is not _TYPES[documents.VARIABLES[name]] or not isinstance(value, str | int):
        raise _Denied("variable_mistyped", f"{of} needs {name} as {documents.VARIABLES[name]}, which it is not.")
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if abs(value) > MAX_INTEGER:
        raise _Denied("variable_mistyped", f"{of} needs {name}, which is too large to be compared exactly.")
    return value


def _window(rule: documents.Rule, variables: Mapping[str, Any], counted: Counted | None) -> WindowSum:
    of, window = f"Rule {rule.id}", rule.window
    assert window is not None
    value, currency = (str(_value(name, variables, of=of)) for name in (window.by, "currency"))
    amount = _value("amount_minor", variables, of=of)
    if type(amount) is not int or amount <= 0:
        raise _Denied("variable_mistyped", f"{of} needs an amount above zero.")
    if value == "":
        raise _Denied("variable_missing", f"{of} needs {window.by}, which is empty for this action.")
    if currency not in window.above:
        raise _Denied("no_window_limit", f"{rule.text}: there is no limit for {currency}, so nothing is allowed in it.")
    if counted is None:
        raise _Denied("window_unknown", f"{of} needs to know what else there has been, which is not known here.")
    need = WindowNeed(by=window.by, value=value, currency=currency, hours=window.hours)
    others, proposals = counted(need)
    return WindowSum(
        rule=rule.id,
        need=need,
        above_minor=int(window.above[currency]),
        amount_minor=amount,
        others_minor=others,
        proposals=proposals,
    )


def _weigh(document: documents.PolicyDocument, matched: list[documents.Rule], variables: Mapping[str, Any]) -> Verdict:
    denying = [rule for rule in matched if rule.effect == "deny"]
    if denying:
        text = " ".join(rule.text if rule.text.endswith(".") else f"{rule.text}." for rule in denying)
        return Verdict(effect="deny", rules=_named(denying), code="denied_by_rule", text=text)
    asking = [rule for rule in matched if rule.effect == "ask"]
    allowing = [rule for rule in matched if rule.effect == "allow"]
    if not asking and not allowing:
        return Verdict(effect="deny", code="no_rule", text="No rule of the policy allows this.")
    need = _added_up(document, asking) if asking else None
    if need is not None and need.confirm == "retype":  # an amount that does not exist cannot be typed
        _value("amount_minor", variables, of="The amount to be typed again")
    return Verdict(
        effect="ask" if asking else "allow",
        rules=_named(asking or allowing),
        need=need,
        totals=[_need(document, total, variables) for total in document.totals],
    )


def _named(rules: list[documents.Rule]) -> list[dict[str, str]]:
    return [{"id": rule.id, "text": rule.text} for rule in rules]


def _added_up(document: documents.PolicyDocument, asking: list[documents.Rule]) -> Requirement:
    """The strictest of everything several asks require."""
    asks = [rule.ask for rule in asking if rule.ask is not None]
    if len(asks) != len(asking):
        raise _Denied("policy_unreadable", "A rule asks, but names nobody to ask.")
    if not all(ask.chain() for ask in asks):
        raise _Denied("policy_unreadable", "A rule asks, but names nobody to ask.")
    stages = _all_stages(asks)
    reminders = [ask.remind_after_minutes for ask in asks if ask.remind_after_minutes is not None]
    return Requirement(
        group=stages[0].groups[0],
        quorum=sum(stage.quorum for stage in stages),
        respond_within=_minutes(min(ask.respond_within_minutes for ask in asks)),
        valid_for=_minutes(min(ask.valid_for_minutes for ask in asks)),
        stages=stages if len(stages) > 1 or any(ask.stages for ask in asks) else (),
        in_order=len(stages) > 1 and any(ask.order == "sequential" for ask in asks),
        confirm=confirming.strictest(levels=[ask.confirm for ask in asks]),
        clock="working" if all(ask.clock == "working" for ask in asks) else "elapsed",
        remind_after=_minutes(min(reminders)) if reminders else None,
        escalations=_escalations(asks),
        when_late="reject" if any(ask.when_late == "reject" for ask in asks) else "expire",
        standing=_beforehand(document, asks, stages),
    )


def _beforehand(
    document: documents.PolicyDocument, asks: list[documents.Ask], stages: tuple[StageNeed, ...]
) -> dict[str, int] | None:
    """How far an approval that was given beforehand may answer, which takes one stage of its group and whoever, and a
    click: who gave it has typed no amount and proved no login for this one."""
    terms = document.standing
    if terms is None or any(ask.confirm != confirming.CLICK for ask in asks):
        return None
    if not all(ask.standing for ask in asks) or not of_one_group(stages=stages, group=terms.group):
        return None
    return {code: int(most) for code, most in terms.most.items()}


def _minutes(number: int) -> dt.timedelta:
    return dt.timedelta(minutes=number)


def _all_stages(asks: list[documents.Ask]) -> tuple[StageNeed, ...]:
    """Every stage that one of them asks, in the order of the rules; what several ask comes once, at its strictest."""
    same: dict[tuple[Any, int], list[StageNeed]] = {}
    for ask in asks:
        times: Counter[Any] = Counter()  # one ask may have the same people twice
        for stage in ask.chain():
            same.setdefault((stage.asks_the_same, times[stage.asks_the_same]), []).append(stage)
            times[stage.asks_the_same] += 1
    return tuple(_strictest(tuple(stages)) for stages in same.values())


def _strictest(same: tuple[StageNeed, ...]) -> StageNeed:
    """Of stages that ask the same people: the most of them needed, the fewest who end it."""
    first = same[0]
    return StageNeed(
        name=first.name,
        groups=first.groups,
        quorum=max(stage.quorum for stage in same),
        reject_at=min(stage.reject_at for stage in same),
        person=first.person,
    )


def _escalations(asks: list[documents.Ask]) -> tuple[Escalation, ...]:
    """Only what every asking rule names: nobody is asked whom one of them would not ask."""
    named = [{(one.group, one.after_minutes) for one in ask.escalate or []} for ask in asks]
    return tuple(
        Escalation(after=_minutes(after), group=group)
        for group, after in sorted(set[tuple[str, int]].intersection(*named), key=lambda pair: pair[1])
    )


def _need(document: documents.PolicyDocument, total: documents.Total, variables: Mapping[str, Any]) -> TotalNeed:
    of = f"Total {total.id}"
    if not set(total.key) <= set(documents.VARIABLES) or "currency" not in total.key:
        raise _Denied("policy_unreadable", f"{of} has a key that cannot be used.")
    values = [str(_value(name, variables, of=of)) for name in total.key]
    if "" in values:
        raise _Denied("variable_missing", f"{of} needs {total.key[values.index('')]}, which is empty for this action.")
    currency = values[total.key.index("currency")]
    amount = _value(total.amount, variables, of=of)
    if type(amount) is not int or amount <= 0:
        raise _Denied("variable_mistyped", f"{of} needs an amount above zero.")
    if currency not in total.limits:
        raise _Denied("no_total_limit", f"{total.text}: there is no limit for {currency}, so nothing is allowed in it.")
    limit = int(total.limits[currency])
    if amount > limit:
        raise _Denied("over_total", f"{total.text}: the amount alone is above the limit.")
    escaped = [value.replace("%", "%25").replace("/", "%2F") for value in values]
    key = "/".join(part for part in (document.policy, total.id, *escaped) if part)
    if len(key) > KEY_LENGTH:
        raise _Denied("total_key_too_long", f"{of} has a key longer than {KEY_LENGTH} characters.")
    label = f"{total.text}: {', '.join(values)}"[:LABEL_LENGTH]
    return TotalNeed(key=key, label=label, currency=currency, limit_minor=limit, amount_minor=amount)
