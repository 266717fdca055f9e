"""Where in the editor of a policy something is: the field that a problem is about, and the one to go on at."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from approvals import ask_fields
from approvals.forms import RuleForm, StandingForm, TotalForm, Typed
from approvals.rules import Problem
from runs.forms import Form

_RULE = {
    "id": "id",
    "text": "text",
    "when": "when",
    "effect": "effect",
    "ask": "group",
    "ask.group": "group",
    "ask.quorum": "quorum",
    "ask.order": "order",
    "ask.stages": "stage-0-name",
    "ask.respond_within_minutes": "respond",
    "ask.valid_for_minutes": "valid",
    "ask.clock": "clock",
    "ask.remind_after_minutes": "remind",
    "ask.escalate": "step-0-after",
    "ask.when_late": "late",
    "ask.confirm": "confirm",
    "ask.standing": "standing",
    "window": "by",
    "window.by": "by",
    "window.hours": "hours",
    "window.above": "above",
}
_STAGE = {
    "": "groups",
    "name": "name",
    "groups": "groups",
    "quorum": "quorum",
    "reject_at": "reject_at",
    "person": "within",
    "person.within_limit": "within",
    "person.team": "team",
    "person.region": "region",
}
_STEP = {"": "after", "after_minutes": "after", "group": "group"}
_STANDING = {"most": "most", "alone_up_to": "alone", "longest_days": "days"}
FEW = 4  # rules that are shown open, all of them
_TOTAL = ("text", "key", "limits")
_PARTS = {"stages": ("stage", _STAGE), "escalate": ("step", _STEP)}


def of(*, typed: Typed) -> Callable[[Problem], str]:
    """From a problem to the id of the field that it is about; "" for none."""
    if typed.mode == "text":
        return lambda problem: "id_document"
    rule_at = {row.get("id", ""): at for at, row in reversed(list(enumerate(typed.rules)))}
    rule_at |= {f"rule {at + 1}": at for at in range(len(typed.rules))}
    total_at = {row.get("id", ""): at for at, row in enumerate(typed.totals)}
    total_at |= {f"total {at + 1}": at for at in range(len(typed.totals))}

    def place(problem: Problem) -> str:
        if problem.where in rule_at:
            return f"id_rule-{rule_at[problem.where]}-{_field(problem.field)}"
        if problem.where in total_at:
            name = problem.field.split(".")[0]
            return f"id_total-{total_at[problem.where]}-{name if name in _TOTAL else 'id'}"
        if problem.where == "standing" or problem.field.startswith("standing."):
            name = problem.field.removeprefix("standing.").split(".")[0]
            return f"id_standing-{_STANDING.get(name, 'group')}"
        return {"note": "id_note", "tools": "tools"}.get(problem.field, "")

    return place


def _field(path: str) -> str:
    """The field of a rule for `ask.stages.2.person.team`, which counts from one."""
    words = path.split(".")
    if words[0] == "ask" and len(words) > 2 and words[1] in _PARTS and words[2].isdigit():
        kind, names = _PARTS[words[1]]
        return f"{kind}-{int(words[2]) - 1}-{_nearest(words[3:], names, default=names[''])}"
    return _nearest(words, _RULE, default="id")


def _nearest(words: list[str], names: Mapping[str, str], *, default: str) -> str:
    """The name of the longest beginning that has one: a currency or a place in a list has no field of its own."""
    beginnings = (".".join(words[:count]) for count in range(len(words), 0, -1))
    return next((names[one] for one in beginnings if one in names), default)


def by_field(*, problems: Iterable[tuple[Problem, str]]) -> dict[str, list[str]]:
    """What is to be said at each field, by its id."""
    found: dict[str, list[str]] = {}
    for problem, place in problems:
        found.setdefault(place, []).append(f"This {problem.remedy}" if problem.remedy[:1].islower() else problem.remedy)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What to go on at: the id of a field or button, and the rule (from 0) that is shown open."""

    focus: str = ""
    rule: int = -1


def after(*, op: str, typed: Typed) -> Next:
    """Where to go on after something was added, moved or removed: in the first field of what is new, or at the button
    that adds. `typed` has the change already."""
    name, _, place = op.partition(":")
    act, _, kind = name.partition("_")
    first = place.split(".")[0]
    rule = int(first) if first.isascii() and first.isdigit() and len(first) < 4 else -1
    if kind not in ("stage", "step"):
        if act in ("up", "down"):
            return Next(rule=rule + (1 if act == "down" else -1))
        if act == "remove":
            return Next(focus=f"add-{kind or 'rule'}")
        rows = typed.totals if kind else typed.rules
        new = len(rows) - 1
        return Next(focus=f"id_{kind or 'rule'}-{new}-id" if act == "add" else "", rule=-1 if kind else new)
    if act == "remove":
        return Next(focus=f"add-{kind}-{rule}", rule=rule)
    if act != "add" or not 0 <= rule < len(typed.rules):
        return Next(rule=rule)
    count = len(ask_fields.parts(typed.rules[rule], kind))
    return Next(focus=f"id_rule-{rule}-{kind}-{count - 1}-{'name' if kind == 'stage' else 'after'}", rule=rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The forms of what was typed, with `told` at their fields (texts by id) and the cursor where to go on."""

    typed: Typed
    told: Mapping[str, list[str]]
    go_on: Next

    def rules(self) -> list[RuleForm]:
        """Of many, only those are open in which there is something to do."""
        found = self.typed.rule_forms()
        for at, rule in enumerate(found):
            self._mark(rule, *rule.stages, *rule.steps)
            wrong = any(form.errors for form in (rule, *rule.stages, *rule.steps))
            rule.is_open = len(found) <= FEW or wrong or at == self.go_on.rule
        return found

    def totals(self) -> list[TotalForm]:
        found = self.typed.total_forms()
        self._mark(*found)
        return found

    def standing(self) -> StandingForm:
        found = self.typed.standing_form()
        self._mark(found)
        return found

    def _mark(self, *shown: Any) -> None:
        form: Form
        for form in shown:
            form.full_clean()  # it is not bound, so this judges nothing, but makes room for what is said
            form.cleaned_data = {}
            for name, field in form.fields.items():
                at = form[name].auto_id
                for text in self.told.get(at, []):
                    form.add_error(name, text)
                if at == self.go_on.focus:
                    field.widget.attrs["autofocus"] = True
