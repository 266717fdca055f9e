"""What whoever starts a run takes away from it: it is granted less than its workflow grants, and never more."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from approvals import rules
from approvals.expressions import ExpressionError
from approvals.words import is_blank, storable
from runs.canonical import nfc

MOST_VALUES = 100
VALUE_LENGTH = 300


class BadTerms(Exception):
    """What was given is no narrower grant; `faults` is a list of {"field", "message"}."""

    def __init__(self, faults: list[dict[str, str]]) -> None:
        super().__init__("; ".join(f"{one['field']}: {one['message']}" for one in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Less:
    """Of one tool: `only` these values of policy variables, where the condition `when` holds, `until` an ISO time with
    its offset. What is left out narrows nothing."""

    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    when: str = ""
    until: str = ""

    def plain(self) -> dict[str, Any]:
        """As the same start would give it again."""
        only = {name: list(values) for name, values in self.only.items()}
        return {"only": only, "when": self.when, "until": self.until}


def narrowed(
    *, tools: Sequence[str], terms: Mapping[str, Any], wanted: Mapping[str, Less], now: dt.datetime | None
) -> tuple[list[str], dict[str, Any]]:
    """The tools that are left of `tools`, in their order, and `terms` (as `Run.terms`) narrowed further by `wanted`,
    which names every tool that is to be left. A time that is over at `now` is refused, unless that is None.

    Raises BadTerms, naming each field under `capabilities`.
    """
    faults: list[dict[str, str]] = []
    if not wanted:
        faults.append(_fault("", f"names no tool; name at least one of {', '.join(tools)}"))
    made: dict[str, Any] = {}
    for tool, less in wanted.items():
        if tool not in tools:
            faults.append(_fault(_shown(tool), f"the workflow does not grant it; it grants {', '.join(tools)}"))
            continue
        found = list(_problems(tool, less, terms.get(tool, {}), now))
        faults += found
        if not found:
            made[tool] = _both(terms.get(tool, {}), less)
    if faults:
        raise BadTerms(faults)
    return [tool for tool in tools if tool in made], {tool: made[tool] for tool in tools if made.get(tool)}


def _fault(path: str, message: str) -> dict[str, str]:
    return {"field": f"capabilities.{path}" if path else "capabilities", "message": message}


def _shown(name: str) -> str:
    return storable(text=name)[:80]


def _problems(tool: str, less: Less, had: Mapping[str, Any], now: dt.datetime | None) -> Iterator[dict[str, str]]:
    for name, values in less.only.items():
        path = f"{tool}.only.{_shown(name)}"
        if rules.VARIABLES.get(name) != "string":
            known = ", ".join(sorted(key for key, kind in rules.VARIABLES.items() if kind == "string"))
            yield _fault(path, f"is not a text variable of policies; there are {known}")
        elif not 0 < len(values) <= MOST_VALUES:
            yield _fault(path, f"give 1 to {MOST_VALUES} values")
        elif any(is_blank(text=one) or len(one) > VALUE_LENGTH or storable(text=one) != one for one in values):
            yield _fault(path, f"give readable values of up to {VALUE_LENGTH} characters")
        elif not _left(values, had.get("only", {}).get(name)):
            yield _fault(path, f"leaves nothing: the workflow grants only {', '.join(had['only'][name])}")
    if less.when:
        try:
            rules.compiled(source=less.when)
            rules.compiled(source=_all_of(had.get("when", ""), less.when))
        except ExpressionError as problem:
            yield _fault(f"{tool}.when", str(problem))
    if less.until:
        at = _moment(less.until)
        if at is None:
            yield _fault(f"{tool}.until", "write an ISO 8601 time with its offset, such as 2027-01-31T18:00:00+01:00")
        elif now is not None and at <= now:
            yield _fault(f"{tool}.until", "is over already; give a time to come")


def _left(values: Sequence[str], had: Sequence[str] | None) -> list[str]:
    wanted: list[str] = list(dict.fromkeys(nfc(list(values))))
    return wanted if had is None else [one for one in wanted if one in had]


def _all_of(*conditions: str) -> str:
    given = [one for one in conditions if one]
    return "".join(given) if len(given) < 2 else " && ".join(f"({one})" for one in given)


def _moment(text: str) -> dt.datetime | None:
    try:
        at = dt.datetime.fromisoformat(text)
        return None if at.utcoffset() is None else at.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def _both(had: Mapping[str, Any], less: Less) -> dict[str, Any]:
    only = dict(had.get("only", {}))
    for name, values in less.only.items():
        only[name] = _left(values, only.get(name))
    made: dict[str, Any] = {"only": only} if only else {}
    if when := _all_of(had.get("when", ""), less.when):
        made["when"] = when
    ends = [one for one in (_moment(had.get("until", "")), _moment(less.until)) if one is not None]
    if ends:
        made["until"] = min(ends).isoformat()
    return made
