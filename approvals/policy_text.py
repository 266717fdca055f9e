"""The parts of a policy version in sentences. Pure."""

import json
from typing import Any

from approvals import confirming
from approvals.evaluation import WindowSum
from runs.money import Money, MoneyError


def asks(*, ask: dict[str, Any]) -> str:
    """Who is asked and for how long, in a sentence."""
    worked = " of working time" if ask.get("clock") == "working" else ""
    parts = [
        f"asks {chain(ask=ask)}",
        f"to be answered within {_time(ask['respond_within_minutes'])}{worked}",
        f"usable for {_time(ask['valid_for_minutes'])} after that",
    ]
    if "remind_after_minutes" in ask:
        parts.append(f"reminds every {_time(ask['remind_after_minutes'])}")
    for step in ask.get("escalate", []):
        parts.append(f"after {_time(step['after_minutes'])} asks {step['group']} as well")
    if ask.get("when_late") == "reject":
        parts.append("rejects when nobody answers in time")
    level = ask.get("confirm", confirming.CLICK)
    if level != confirming.CLICK:
        parts.append(f"each approval takes {confirming.WORDS.get(level, level)}")
    if ask.get("standing"):
        parts.append("or an approval that was given beforehand answers")
    return "; ".join([", ".join([f"{parts[0]}; {parts[1]}", parts[2]]), *parts[3:]])


def _time(minutes: int) -> str:
    """`45 min`, `4 h` or `26 h 30 min`, exactly: a day of working time is no 24 hours."""
    hours, rest = divmod(minutes, 60)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{rest} min"] if rest or not hours else [])])


def chain(*, ask: dict[str, Any]) -> str:
    """`2 people of finance, then one person of controllers`."""
    if "stages" not in ask:
        return f"{_people(ask['quorum'])} of {ask['group']}"
    joint = ", then " if ask.get("order") == "sequential" else " and "
    return joint.join(stage(one=one) for one in ask["stages"])


def stage(*, one: dict[str, Any]) -> str:
    """`Finance: 2 people of finance or treasury, each within their own limit; 2 who say no end it`."""
    said = ", ".join([f"{one['name']}: {_people(one['quorum'])} of {' or '.join(one['groups'])}", *person(one=one)])
    return f"{said} ({rejecting(at=one['reject_at'])})" if one.get("reject_at", 1) > 1 else said


def person(*, one: dict[str, Any]) -> list[str]:
    """What a stage asks of a person beside the group."""
    asked = one.get("person", {})
    said = ["each within their own limit"] if asked.get("within_limit") else []
    return said + [f"of the {name} {asked[name]}" for name in ("team", "region") if asked.get(name)]


def rejecting(*, at: int) -> str:
    return f"{at} who say no end it"


def _people(number: int) -> str:
    return "one person" if number == 1 else f"{number} people"


def window(*, window: dict[str, Any]) -> str:
    """What a rule counts together, in a phrase."""
    limits_ = " or ".join(amounts(limits=window["above"]))
    return (
        f"only where the sum is above {limits_}, together with all that was proposed before for the same "
        f"{window['by']} in {span(hours=window['hours'])} and may still happen, or has"
    )


def together(*, found: WindowSum) -> str:
    """What one rule has counted: `$2,400.00 USD for account ACC-1 in 30 days, this and 1 other`."""
    need, others = found.need, len(found.proposals)
    more = f"this and {others} other{'s' if others != 1 else ''}" if others else "this one alone"
    total = Money(found.total_minor, need.currency)
    return f"{total} for {need.by} {need.value} in {span(hours=need.hours)}: {more}"


def span(*, hours: int) -> str:
    """`30 days` or `36 hours`."""
    count, unit = (hours // 24, "day") if hours % 24 == 0 else (hours, "hour")
    return f"{count} {unit}{'s' if count != 1 else ''}"


def standing(*, terms: dict[str, Any]) -> dict[str, str]:
    """How far people may approve beforehand, by label."""
    alone = ", ".join(amounts(limits=terms.get("alone_up_to", {}))) or "nothing: it always takes two people"
    return {
        "Who may approve beforehand": f"members of {terms['group']}",
        "The most of one standing approval": ", ".join(amounts(limits=terms["most"])),
        "What one person may grant alone": alone,
        "For how long": f"{terms['longest_days']} days at most",
    }


def limits(*, total: dict[str, Any]) -> list[str]:
    """The limits of a running total in words: `$20,000.00 USD`."""
    return amounts(limits=total["limits"])


def amounts(*, limits: dict[str, str]) -> list[str]:
    """Minor units by currency in words."""
    found = []
    for currency, minor in limits.items():
        try:
            found.append(str(Money(int(minor), currency)))
        except (MoneyError, ValueError):  # written by an older release: show it as it stands
            found.append(f"{minor} minor units of {currency}")
    return found


def pretty(*, document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
