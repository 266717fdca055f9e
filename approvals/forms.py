"""The editor of a policy's draft: what was typed, as a form of rules or as the whole text, and the document it means.

Nothing is judged here but whether it can be read: `rules.validate` names what is wrong, and what was typed stays.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.contrib.auth.models import Group

from approvals import ask_fields, confirming
from approvals.ask_fields import StageForm, StepForm, either, group_choices, text, whole
from approvals.rules import MAX_RULES, Problem
from runs.forms import Form
from runs.money import Money, MoneyError, parse_amount

MAX_TEXT = 300_000  # characters of the whole document
EFFECTS = (("allow", "Automatic"), ("ask", "Asks people"), ("deny", "Refuses"))
CONFIRMS = [(level, confirming.WORDS[level].capitalize()) for level in confirming.LEVELS]
COUNTED_BY = (("", "Not: each by itself"), *((name, name) for name in ("account", "ticket", "incident", "agent")))
LATE = ("expire", "It expires"), ("reject", "It is rejected")
CLOCKS = ("elapsed", "Elapsed time"), ("working", "Working time")
NEW_RULE = {"effect": "ask", "quorum": "1", "respond": "240", "valid": "60"}
MAX_TOTALS = 20


class RuleForm(Form):
    """The fields of one rule; all are text, and what they must be is said by the findings."""

    id = forms.CharField(label="Name", help_text="Small letters, digits and hyphens", required=False, max_length=60)
    effect = forms.ChoiceField(label="What it does", choices=EFFECTS, required=False)
    text = forms.CharField(label="In words, as people read it", required=False, max_length=300)
    when = forms.CharField(
        label="When", required=False, widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})
    )
    group = forms.ChoiceField(label="Group that is asked", required=False)
    quorum = forms.CharField(label="People needed", required=False)
    order = forms.ChoiceField(label="The stages answer", required=False)
    respond = forms.CharField(label="Minutes to answer", required=False)
    clock = forms.ChoiceField(label="Counted as", required=False)
    remind = forms.CharField(label="Remind after", help_text="Minutes; empty: never", required=False)
    late = forms.ChoiceField(label="If nobody answers", required=False)
    valid = forms.CharField(label="Usable for minutes", required=False)
    confirm = forms.ChoiceField(label="An approval takes", choices=CONFIRMS, required=False)
    standing = forms.ChoiceField(label="Can be approved beforehand", required=False)
    by = forms.ChoiceField(label="Counted together with others of the same", choices=COUNTED_BY, required=False)
    hours = forms.CharField(label="In how many hours", required=False)
    above = forms.CharField(
        label="Matches where the sum is above",
        help_text="One currency a line, such as USD 1000.00",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, groups: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        had = {name: str(value or "") for name, value in self.initial.items()}
        names = list(groups)
        given = {
            "group": group_choices(names, had=had.get("group", ""), none="Choose a group"),
            "order": [*(() if had.get("order") else (("", "There is one alone"),)), *ask_fields.ORDERS],
            "clock": either(had=had.get("clock", ""), usual=CLOCKS[0], other=CLOCKS[1]),
            "late": either(had=had.get("late", ""), usual=LATE[0], other=LATE[1]),
            "standing": either(had=had.get("standing", ""), usual=("no", "No"), other=("yes", "Yes")),
        }
        for name, choices in given.items():
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        for name in ("quorum", "respond", "remind", "valid", "hours"):
            self.fields[name].widget.attrs["inputmode"] = "numeric"
        self.is_open = True  # shown with all its fields
        self.stages = self._parts("stage", StageForm, names)
        self.steps = self._parts("step", StepForm, names)

    def _parts(self, kind: str, form: Any, groups: list[str]) -> list[Any]:
        rows = ask_fields.parts(self.initial, kind)
        return [form(row=row, prefix=f"{self.prefix}-{kind}-{at}", groups=groups) for at, row in enumerate(rows)]


class TotalForm(Form):
    """The fields of one running total."""

    id = forms.CharField(label="Name", required=False, max_length=60)
    text = forms.CharField(label="In words", required=False, max_length=300)
    key = forms.CharField(label="For each", help_text="Such as account, month, currency", required=False)
    limits = forms.CharField(
        label="Limits",
        help_text="One currency a line, such as USD 20000.00",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )


class StandingForm(Form):
    """How far people may approve beforehand; all of it empty means not at all."""

    group = forms.ChoiceField(label="Group that may approve beforehand", required=False)
    most = forms.CharField(
        label="The most of one standing approval, in all of its period",
        help_text="One currency a line, such as USD 10000.00",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    alone = forms.CharField(
        label="What one of them may grant alone",
        help_text="The same way; beyond it, a second person",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    days = forms.CharField(label="For how many days at most", required=False)

    def __init__(self, *args: Any, groups: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["group"].choices = group_choices(groups, had=str(self.initial.get("group") or ""), none="Nobody")  # type: ignore[attr-defined]
        self.fields["days"].widget.attrs["inputmode"] = "numeric"


STANDING_FIELDS = tuple(StandingForm.base_fields)
RULE_FIELDS = tuple(RuleForm.base_fields)
TOTAL_FIELDS = tuple(TotalForm.base_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What is in the editor. In the form `rules` and `totals` are texts by field; as text, `text` is all of it."""

    mode: str  # form or text
    revision: int
    note: str
    tools: list[str]
    rules: list[dict[str, str]] = field(default_factory=list)
    totals: list[dict[str, str]] = field(default_factory=list)
    standing: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def document(self) -> tuple[Any, list[Problem]]:
        """The document that is meant, or what keeps it from being read."""
        if self.mode == "text":
            return _read_text(self.text)
        problems: list[Problem] = []
        totals = [_total(one, problems) for one in self.totals]
        found: dict[str, Any] = {"rules": [_rule(one, problems) for one in self.rules], "totals": totals}
        if any(value.strip() for value in self.standing.values()):
            found["standing"] = _standing(self.standing, problems)
        return found, problems

    def standing_form(self) -> StandingForm:
        return StandingForm(initial=self.standing, prefix="standing", groups=_group_names())

    def rule_forms(self) -> list[RuleForm]:
        groups = _group_names()
        return [RuleForm(initial=one, prefix=f"rule-{at}", groups=groups) for at, one in enumerate(self.rules)]

    def total_forms(self) -> list[TotalForm]:
        return [TotalForm(initial=one, prefix=f"total-{at}") for at, one in enumerate(self.totals)]

    def changed(self, *, op: str) -> "Typed":
        """The same with a rule or total added, moved or removed: `add`, `add_total`, `up:2`, `down:2`, `remove:2`,
        `remove_total:0`; or a stage or an escalation of a rule: `add_stage:2`, `up_stage:2.1`, `remove_step:2.0`.
        Anything else changes nothing."""
        name, _, place = op.partition(":")
        at, within = (_place(number) for number in (*place.split(".", 1), "")[:2])
        rules, totals = list(self.rules), list(self.totals)
        if name == "add" and len(rules) < MAX_RULES:
            rules.append(dict(NEW_RULE))
        elif name == "add_total" and len(totals) < MAX_TOTALS:
            totals.append({})
        elif name == "remove" and 0 <= at < len(rules):
            del rules[at]
        elif name == "remove_total" and 0 <= at < len(totals):
            del totals[at]
        elif name.endswith(("_stage", "_step")) and 0 <= at < len(rules):
            rules[at] = ask_fields.changed(rules[at], name=name, at=within)
        elif name == "up" and 0 < at < len(rules):
            rules[at - 1], rules[at] = rules[at], rules[at - 1]
        elif name == "down" and 0 <= at < len(rules) - 1:
            rules[at], rules[at + 1] = rules[at + 1], rules[at]
        return replace(self, rules=rules, totals=totals)

    def as_text(self) -> "Typed":
        document, _ = self.document()
        return replace(self, mode="text", text=self.text if document is None else written(document=document))

    def as_form(self) -> "Typed":
        """The form of what the text says; the text itself where a form would lose some of it."""
        document, problems = self.document()
        shown = None if problems else from_document(document=document, like=self)
        return self if shown is None else shown


def typed_from_post(*, data: Mapping[str, Any], tools: list[str]) -> Typed:
    """Read a posted editor; `tools` are the ones ticked."""
    number = str(data.get("revision", ""))
    return Typed(
        mode="text" if data.get("mode") == "text" else "form",
        revision=int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0,
        note=_lines(data.get("note")),
        tools=tools,
        rules=_rows(data, "rule", RULE_FIELDS, MAX_RULES),
        totals=_rows(data, "total", TOTAL_FIELDS, MAX_TOTALS),
        standing={name: _lines(data.get(f"standing-{name}")) for name in STANDING_FIELDS},
        text=_lines(data.get("document"))[: MAX_TEXT + 1],
    )


def from_document(*, document: Any, like: Typed) -> Typed | None:
    """The form that shows the document, or None where it has what the form has no field for."""
    try:
        shown = replace(
            like,
            mode="form",
            rules=[_rule_row(one) for one in document["rules"]],
            totals=[_total_row(one) for one in document.get("totals", [])],
            standing=_standing_row(document["standing"]) if "standing" in document else {},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    again, problems = shown.document()
    plain = {"rules": document["rules"], "totals": document.get("totals", [])}
    plain |= {"standing": document["standing"]} if "standing" in document else {}
    extra = set(document) - {"rules", "totals", "standing", "policy"}
    return None if problems or extra or again != plain or len(shown.rules) > MAX_RULES else shown


def written(*, document: Mapping[str, Any]) -> str:
    """The document as text to edit, its fields in the order of `approvals.rules`; the policy's own name is left out."""
    plain = {key: value for key, value in document.items() if key != "policy"}
    return json.dumps(_in_order(plain), indent=2, ensure_ascii=False)


# the database keeps the names of an object in an order of its own
_ORDER = ["rules", "totals", "id", "effect", "text", "when", "ask", "window", "by", "hours", "above", "group", "quorum"]
_ORDER += ["respond_within_minutes", "order", "stages", "name", "groups", "reject_at", "person", "within_limit", "team"]
_ORDER += ["region", "valid_for_minutes", "confirm", "clock", "remind_after_minutes", "escalate", "after_minutes"]
_ORDER += ["when_late", "key", "amount", "limits", "standing", "most", "alone_up_to", "longest_days"]


def _in_order(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_order(item) for item in value]
    if not isinstance(value, dict):
        return value
    known = [name for name in _ORDER if name in value]
    return {name: _in_order(value[name]) for name in [*known, *sorted(set(value) - set(known))]}


def _place(number: str) -> int:
    return int(number) if number.isascii() and number.isdigit() and len(number) < 4 else -1


def _lines(value: Any) -> str:
    return str(value or "").replace("\r\n", "\n")


def _rows(data: Mapping[str, Any], kind: str, names: tuple[str, ...], most: int) -> list[dict[str, str]]:
    rows = []
    for at in range(most):
        if f"{kind}-{at}-id" not in data:
            break
        rows.append({name: _lines(data.get(f"{kind}-{at}-{name}")) for name in names})
        if kind == "rule":
            rows[-1] |= ask_fields.posted(data, f"rule-{at}")
    return rows


def _rule(row: Mapping[str, str], problems: list[Problem]) -> dict[str, Any]:
    found: dict[str, Any] = {name: row.get(name, "") for name in ("id", "effect", "text", "when")}
    if found["effect"] == "ask":
        found["ask"] = ask_fields.meant(row)
    if row.get("by"):
        above = _money_lines(row.get("above", ""), where=found["id"][:60], field="window.above", problems=problems)
        found["window"] = {"by": row["by"], "hours": whole(row.get("hours", "")), "above": above}
    return found


def _rule_row(rule: Mapping[str, Any]) -> dict[str, str]:
    window = rule.get("window") or {}
    return {
        **{name: text(rule[name]) for name in ("id", "effect", "text", "when")},
        **ask_fields.shown(rule.get("ask") or {}),
        "by": text(window.get("by", "")),
        "hours": str(window.get("hours", "")),
        "above": _as_lines(window.get("above", {})),
    }


def _total(row: Mapping[str, str], problems: list[Problem]) -> dict[str, Any]:
    name = row.get("id", "")
    limits = _money_lines(row.get("limits", ""), where=name[:60] or "a total", field="limits", problems=problems)
    key = [part.strip() for part in row.get("key", "").split(",") if part.strip()]
    return {"id": name, "text": row.get("text", ""), "key": key, "amount": "amount_minor", "limits": limits}


def _money_lines(text: str, *, where: str, field: str, problems: list[Problem]) -> dict[str, str]:
    """Minor units by currency, from one currency and amount a line."""
    limits: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        code, _, amount = line.strip().partition(" ")
        try:
            money = parse_amount(text=amount.strip(), currency=code)
        except MoneyError as error:
            remedy = f"has the line {line.strip()[:60]!r}, which {error}; write a currency and an amount, USD 20000.00"
            problems.append(Problem(where=where, field=field, remedy=remedy))
            continue
        if money.currency in limits:
            problems.append(Problem(where=where, field=field, remedy=f"names {money.currency} twice"))
        limits[money.currency] = str(money.minor)
    return limits


def _as_lines(limits: Mapping[str, str]) -> str:
    return "\n".join(f"{code} {Money(int(minor), code).plain()}" for code, minor in limits.items())


def _standing(row: Mapping[str, str], problems: list[Problem]) -> dict[str, Any]:
    return {
        "group": row.get("group", ""),
        "most": _money_lines(row.get("most", ""), where="standing", field="most", problems=problems),
        "alone_up_to": _money_lines(row.get("alone", ""), where="standing", field="alone_up_to", problems=problems),
        "longest_days": whole(row.get("days", "")),
    }


def _standing_row(terms: Mapping[str, Any]) -> dict[str, str]:
    return {
        "group": text(terms["group"]),
        "most": _as_lines(terms["most"]),
        "alone": _as_lines(terms.get("alone_up_to", {})),
        "days": str(terms["longest_days"]),
    }


def _group_names() -> list[str]:
    return list(Group.objects.order_by("name").values_list("name", flat=True))


def _total_row(total: Mapping[str, Any]) -> dict[str, str]:
    return {
        "id": text(total["id"]),
        "text": text(total["text"]),
        "key": ", ".join(total["key"]),
        "limits": _as_lines(total["limits"]),
    }


def _read_text(text: str) -> tuple[Any, list[Problem]]:
    if len(text) > MAX_TEXT:
        remedy = f"is longer than {MAX_TEXT} characters; shorten it"
        return None, [Problem(where="policy", field="document", remedy=remedy)]
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        remedy = f"is not JSON that can be read ({str(error)[:200]}); mend it there"
        return None, [Problem(where="policy", field="document", remedy=remedy)]
    if not isinstance(found, dict):
        return None, [Problem(where="policy", field="document", remedy="is not an object with rules and totals")]
    return found, []


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are each given once: of two, a reader and the machine might see different ones."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:60]!r} is given twice in one object")
        found[name] = value
    return found
