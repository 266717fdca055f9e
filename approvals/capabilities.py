"""What a run may do: which tools, on which resources, under which conditions, until when. Fixed when it starts.

`Run.capabilities` names the tools and `Run.terms` narrows them: {tool: {"only": {variable: [values]}, "when":
condition, "until": ISO time}}, each part only where it is set. What is not granted, over, or cannot be judged is a no.
"""

import datetime as dt
import unicodedata
from collections.abc import Mapping
from typing import Any

from approvals.condition_words import NAMES, in_words
from approvals.evaluation import condition_holds
from approvals.objections import Objection
from runs.models import Run

SENTENCES = {
    "not_granted": "this run was not granted {tool}",
    "grant_over": "this run was granted {tool} until {until}, and that is over",
    "grant_elsewhere": "this run was granted {tool} only where {variable} is {only}",
    "grant_unmet": "this run was granted {tool} only where {when}",
    "grant_unknown": "this run was granted {tool} only under a condition, and {variable} is not known",
}


def withheld(*, run: Run, tool: str, variables: Mapping[str, Any] | None, now: dt.datetime) -> Objection | None:
    """Why the run may not use the tool so, or None. Without `variables` only what time alone changes is judged: the
    tool and until when. Codes: not_granted, grant_over, grant_elsewhere, grant_unmet, grant_unknown."""
    if tool not in run.capabilities:
        return Objection(code="not_granted", detail={"tool": tool})
    terms = run.terms.get(tool, {})
    if until := terms.get("until"):
        ends = dt.datetime.fromisoformat(until)
        if now >= ends:
            return Objection(code="grant_over", detail={"tool": tool, "until": spoken(at=ends)})
    return None if variables is None else _beyond(tool, terms, variables)


def _beyond(tool: str, terms: Mapping[str, Any], variables: Mapping[str, Any]) -> Objection | None:
    for name, values in terms.get("only", {}).items():
        value, spoken_name = variables.get(name), NAMES.get(name, name)
        if not isinstance(value, str) or not value:
            return Objection(code="grant_unknown", detail={"tool": tool, "variable": spoken_name})
        if unicodedata.normalize("NFC", value) not in values:
            detail = {"tool": tool, "variable": spoken_name, "only": " or ".join(values)}
            return Objection(code="grant_elsewhere", detail=detail)
    when = terms.get("when", "")
    if not when:
        return None
    holds = condition_holds(condition=when, variables=variables)
    if holds is None:
        return Objection(code="grant_unknown", detail={"tool": tool, "variable": "something it needs"})
    return None if holds else Objection(code="grant_unmet", detail={"tool": tool, "when": in_words(source=when)})


def sentence(*, objection: Objection) -> str:
    """Why not, as a clause without its full stop."""
    return SENTENCES[objection.code].format_map(objection.detail)


def in_force(*, run: Run, zone: dt.tzinfo = dt.UTC) -> list[tuple[str, list[str]]]:
    """Each tool the run may use, with what narrows it in words; times in `zone`."""
    found = []
    for tool in run.capabilities:
        terms = run.terms.get(tool, {})
        words = [
            f"only where {NAMES.get(name, name)} is {' or '.join(values)}"
            for name, values in terms.get("only", {}).items()
        ]
        words += [f"only where {in_words(source=terms['when'])}"] if terms.get("when") else []
        words += (
            [f"until {spoken(at=dt.datetime.fromisoformat(terms['until']), zone=zone)}"] if terms.get("until") else []
        )
        found.append((tool, words))
    return found


def spoken(*, at: dt.datetime, zone: dt.tzinfo = dt.UTC) -> str:
    there = at.astimezone(zone)
    return f"{there.day} {there:%B %Y} at {there:%H:%M %Z}"
