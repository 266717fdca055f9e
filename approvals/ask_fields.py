"""Whom a rule asks and until when, as fields of a form: stages, times, escalations; and what of a policy they mean.

A row of the editor is flat texts by field: `order`, `clock`, `stage-0-name`, `step-0-after`. A rule with no stage row
asks one group by itself.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from approvals import confirming
from runs.forms import Form

MAX_STAGES = 6
MAX_STEPS = 5  # escalations
ORDERS = (("sequential", "One after the other"), ("parallel", "All at the same time"))
Row = dict[str, str]


def whole(text: str) -> int | str:
    """A whole number, or the text as it is, which the findings will name."""
    plain = text.strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 10 else text


def group_choices(groups: Iterable[str], *, had: str, none: str) -> list[tuple[str, str]]:
    """The groups there are, and the one that was written if it is none of them."""
    names = list(groups)
    choices = [("", none), *((name, name) for name in names)]
    if had and had not in names:
        choices.append((had, f"{had} (there is no such group)"))
    return choices


def either(*, had: str, usual: tuple[str, str], other: tuple[str, str]) -> list[tuple[str, str]]:
    """Two choices: the usual one is left out of the document, but for one that says it (`usual[0]`) already."""
    return [(usual[0] if had == usual[0] else "", usual[1]), other]


class StageForm(Form):
    """One stage. `groups` is a choice of several; the other fields are text, judged by the findings."""

    name = forms.CharField(label="Name of the stage", required=False, max_length=60)
    groups = forms.MultipleChoiceField(
        label="Groups", required=False, widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"})
    )
    quorum = forms.CharField(label="People needed", required=False)
    reject_at = forms.CharField(label="No votes that end it", help_text="Empty: one", required=False)
    within = forms.ChoiceField(label="Their own limit covers it", required=False)
    team = forms.CharField(label="Of the team", help_text="Empty: any", required=False, max_length=60)
    region = forms.CharField(label="Of the region", help_text="Empty: any", required=False, max_length=60)

    def __init__(self, *, row: Mapping[str, str], prefix: str, groups: Iterable[str]) -> None:
        had = row.get("groups", "").split("\n") if row.get("groups") else []
        super().__init__(initial={**row, "groups": had}, prefix=prefix)
        names = list(groups)
        self.fields["groups"].choices = [  # type: ignore[attr-defined]  # as written first, so that their order stays
            *((name, name if name in names else f"{name} (there is no such group)") for name in had),
            *((name, name) for name in names if name not in had),
        ]
        self.fields["within"].choices = either(  # type: ignore[attr-defined]
            had=row.get("within", ""), usual=("no", "Need not"), other=("yes", "Must")
        )
        for name in ("quorum", "reject_at"):
            self.fields[name].widget.attrs["inputmode"] = "numeric"


class StepForm(Form):
    """An escalation: after so long without an answer another group is asked as well."""

    after = forms.CharField(label="After minutes", required=False)
    group = forms.ChoiceField(label="Group that is asked as well", required=False)

    def __init__(self, *, row: Mapping[str, str], prefix: str, groups: Iterable[str]) -> None:
        super().__init__(initial=dict(row), prefix=prefix)
        self.fields["group"].choices = group_choices(groups, had=row.get("group", ""), none="Choose a group")  # type: ignore[attr-defined]
        self.fields["after"].widget.attrs["inputmode"] = "numeric"


STAGE_FIELDS = tuple(StageForm.base_fields)
STEP_FIELDS = tuple(StepForm.base_fields)
_KINDS = (("stage", STAGE_FIELDS, MAX_STAGES), ("step", STEP_FIELDS, MAX_STEPS))


def parts(row: Mapping[str, str], kind: str) -> list[Row]:
    """The rows of all stages (`stage`) or escalations (`step`) of a rule's row, in their order."""
    names, most = next((names, most) for name, names, most in _KINDS if name == kind)
    found = []
    for at in range(most):
        if f"{kind}-{at}-{names[0]}" not in row:
            break
        found.append({name: row.get(f"{kind}-{at}-{name}", "") for name in names})
    return found


def with_parts(row: Mapping[str, str], kind: str, rows: Iterable[Mapping[str, str]]) -> Row:
    """The rule's row with these instead of the stages or escalations that it had."""
    left = {name: value for name, value in row.items() if not name.startswith(f"{kind}-")}
    return left | {f"{kind}-{at}-{name}": value for at, one in enumerate(rows) for name, value in one.items()}


def posted(data: Mapping[str, Any], prefix: str) -> Row:
    """Those that were posted with one rule; ticked groups are lines."""
    found: Row = {}
    for kind, names, most in _KINDS:
        for at in range(most):
            if f"{prefix}-{kind}-{at}-{names[0]}" not in data:
                break
            for name in names:
                key = f"{kind}-{at}-{name}"
                given = data.getlist(f"{prefix}-{key}") if hasattr(data, "getlist") else [data.get(f"{prefix}-{key}")]
                found[key] = "\n".join(str(one or "").replace("\r\n", "\n") for one in given)
    return found


def changed(row: Row, *, name: str, at: int) -> Row:
    """The row after `add_stage`, `remove_stage`, `up_stage`, `down_stage`, `add_step` or `remove_step`. A rule's first
    stage is the group that it asked by itself; what is left of the last one removed is its group."""
    op, _, kind = name.partition("_")
    rows = parts(row, kind) if kind in ("stage", "step") else []
    if op == "add" and kind == "stage" and not rows:
        group = row.get("group", "")
        first = {"name": group.capitalize(), "groups": group, "quorum": row.get("quorum", "")}
        return with_parts({**row, "order": "sequential"}, kind, [first, {"name": "", "quorum": "1"}])
    if op == "add" and len(rows) < (MAX_STAGES if kind == "stage" else MAX_STEPS):
        rows.append({"name": "", "quorum": "1"} if kind == "stage" else {"after": "", "group": ""})
    elif op == "remove" and kind == "stage" and len(rows) == 1 and at == 0:
        row = {**row, "group": rows[0]["groups"].split("\n")[0], "quorum": rows[0]["quorum"], "order": ""}
        rows = []
    elif op == "remove" and 0 <= at < len(rows):
        del rows[at]
    elif op == "up" and 0 < at < len(rows):
        rows[at - 1], rows[at] = rows[at], rows[at - 1]
    elif op == "down" and 0 <= at < len(rows) - 1:
        rows[at], rows[at + 1] = rows[at + 1], rows[at]
    return with_parts(row, kind, rows)


# ---- what the fields mean


def meant(row: Mapping[str, str]) -> dict[str, Any]:
    """The `ask` of a rule's row."""
    stages, steps = parts(row, "stage"), parts(row, "step")
    found: dict[str, Any] = {}
    if stages:
        found |= {"order": row["order"]} if row.get("order") else {}
        found["stages"] = [_stage(one) for one in stages]
    else:
        found |= {"group": row.get("group", ""), "quorum": whole(row.get("quorum", ""))}
    found["respond_within_minutes"] = whole(row.get("respond", ""))
    found["valid_for_minutes"] = whole(row.get("valid", ""))
    found |= {"clock": row["clock"]} if row.get("clock") else {}
    found |= {"remind_after_minutes": whole(row["remind"])} if row.get("remind", "").strip() else {}
    if steps:
        found["escalate"] = [{"after_minutes": whole(one["after"]), "group": one["group"]} for one in steps]
    found |= {"when_late": row["late"]} if row.get("late") else {}
    found |= {"standing": row["standing"] == "yes"} if row.get("standing") else {}
    if row.get("confirm", confirming.CLICK) not in ("", confirming.CLICK):
        found["confirm"] = row["confirm"]
    return found


def _stage(row: Mapping[str, str]) -> dict[str, Any]:
    person: dict[str, Any] = {"within_limit": row["within"] == "yes"} if row["within"] else {}
    person |= {name: row[name] for name in ("team", "region") if row[name].strip()}
    groups = row["groups"].split("\n") if row["groups"] else []
    found: dict[str, Any] = {"name": row["name"], "groups": groups, "quorum": whole(row["quorum"])}
    found |= {"reject_at": whole(row["reject_at"])} if row["reject_at"].strip() else {}
    return found | ({"person": person} if person else {})


def shown(ask: Mapping[str, Any]) -> Row:
    """The fields that show an `ask`. Raises TypeError for what they cannot hold."""
    row = {
        "group": text(ask.get("group", "")),
        "quorum": str(ask.get("quorum", "1")),
        "order": text(ask.get("order", "")),
        "respond": str(ask.get("respond_within_minutes", "240")),
        "valid": str(ask.get("valid_for_minutes", "60")),
        "clock": text(ask.get("clock", "")),
        "remind": str(ask.get("remind_after_minutes", "")),
        "late": text(ask.get("when_late", "")),
        "confirm": text(ask.get("confirm", confirming.CLICK)),
        "standing": _yes_no(ask, "standing"),
    }
    steps = [
        {"after": str(one.get("after_minutes", "")), "group": text(one["group"])} for one in ask.get("escalate", [])
    ]
    row = with_parts(row, "stage", [_stage_row(one) for one in ask.get("stages", [])])
    return with_parts(row, "step", steps)


def _stage_row(stage: Mapping[str, Any]) -> Row:
    person = stage.get("person", {})
    return {
        "name": text(stage["name"]),
        "groups": "\n".join(text(one) for one in stage["groups"]),
        "quorum": str(stage["quorum"]),
        "reject_at": str(stage.get("reject_at", "")),
        "within": _yes_no(person, "within_limit"),
        "team": text(person.get("team", "")),
        "region": text(person.get("region", "")),
    }


def _yes_no(where: Mapping[str, Any], name: str) -> str:
    return ("yes" if where[name] else "no") if name in where else ""


def text(value: Any) -> str:
    """The text that it is. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
