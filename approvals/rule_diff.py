"""What differs between two documents of a policy, rule by rule and in words. Pure.

Every rule is evaluated and the strictest wins, so their order changes nothing; that it moved is not told.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from approvals.condition_words import in_words
from approvals.policy_text import asks, limits, stage, standing, window

Kind = Literal["added", "removed", "changed"]
EFFECTS = {"allow": "needs no approval", "ask": "asks people", "deny": "is refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One thing that differs: `old` is empty when it is new, `new` when it is gone. `code` is the condition itself."""

    label: str
    old: str = ""
    new: str = ""
    old_code: str = ""
    new_code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A rule or a total that differs; `what` is its sentence, `part` rule, total, standing or tools."""

    kind: Kind
    part: str
    id: str
    what: str
    effect: str = ""
    fields: tuple[Field, ...] = ()


def changes(
    *, old: dict[str, Any], new: dict[str, Any], old_tools: Iterable[str] = (), new_tools: Iterable[str] = ()
) -> list[Change]:
    """Removed, changed and added rules in the order of the new document, then the totals, then the tools."""
    found = _of("rule", old.get("rules", []), new.get("rules", []), _rule_fields)
    found += _of("total", old.get("totals", []), new.get("totals", []), _total_fields)
    found += _of("standing", _sections(old), _sections(new), lambda one: _spoken(standing(terms=one)))
    for tool in sorted(set(new_tools) - set(old_tools)):
        found.append(Change(kind="added", part="tools", id=tool, what="A tool that this policy did not govern before"))
    return found


def _sections(document: dict[str, Any]) -> list[dict[str, Any]]:
    terms = document.get("standing")
    return [] if not terms else [{**terms, "id": "standing", "text": "How far people may approve beforehand"}]


def _spoken(found: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {label: (words, "") for label, words in found.items()}


def _of(part: str, old: list[dict[str, Any]], new: list[dict[str, Any]], fields: Any) -> list[Change]:
    before, after = {one["id"]: one for one in old}, {one["id"]: one for one in new}
    found = []
    for one in old:
        if one["id"] not in after:
            found.append(_change("removed", part, one, _listed(fields(one), {})))
    for one in new:
        if one["id"] not in before:
            found.append(_change("added", part, one, _listed({}, fields(one))))
            continue
        differing = _listed(fields(before[one["id"]]), fields(one))
        if differing:
            found.append(_change("changed", part, one, differing))
    return found


def _change(kind: Kind, part: str, one: dict[str, Any], differing: tuple[Field, ...]) -> Change:
    return Change(kind=kind, part=part, id=one["id"], what=one["text"], effect=one.get("effect", ""), fields=differing)


def _listed(old: dict[str, tuple[str, str]], new: dict[str, tuple[str, str]]) -> tuple[Field, ...]:
    found = []
    for label in dict.fromkeys([*old, *new]):
        before, after = old.get(label, ("", "")), new.get(label, ("", ""))
        if before != after:
            found.append(
                Field(label=label, old=before[0], new=after[0], old_code=before[1], new_code=after[1]),
            )
    return tuple(found)


def _rule_fields(rule: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """label → (in words, as code where there is any)."""
    found = {
        "What it does": (EFFECTS.get(rule["effect"], rule["effect"]), ""),
        "In words": (rule["text"], ""),
        "When": (in_words(source=rule["when"]), rule["when"]),
    }
    if sums := rule.get("window"):
        found["Counted together"] = (window(window=sums), "")
    if ask := rule.get("ask"):
        found["Who is asked"] = (asks(ask=ask), "")
        for number, one in enumerate(ask.get("stages", []), start=1):
            found[f"Stage {number}"] = (stage(one=one), "")
    return found


def _total_fields(total: dict[str, Any]) -> dict[str, tuple[str, str]]:
    found = {"In words": (total["text"], ""), "For each": (", ".join(total["key"]), "")}
    spoken = dict(zip(total["limits"], limits(total=total), strict=True))
    return found | {f"Limit in {currency}": (spoken[currency], "") for currency in sorted(spoken)}
