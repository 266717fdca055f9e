"""What a standing approval allows, what granting and revoking it leads to, every refusal: in words. Reads nothing."""

from collections.abc import Mapping
from typing import Any

from approvals.condition_words import NAMES
from approvals.models.standing import Period, StandingApproval, StandingState
from runs.money import Money

SENTENCES: dict[str, str] = {
    "no_right": "Your rights have changed: members of {group} with the right to vote decide this. Nothing was changed.",
    "not_opened": "The policy of {tool} lets nothing be approved beforehand, so people are asked each time.",
    "invalid": "This cannot be approved beforehand as it is. What has to be mended is named below.",
    "closed": "This has been answered meanwhile: it is {state}. Nothing was changed.",
    "own": "You wrote this, and it allows more than one person may, so somebody else puts it in force.",
    "own_decline": "You wrote this yourself: withdraw it instead.",
    "not_yours": "Only its author can withdraw it. Nothing was changed.",
    "page_differs": "What you had before you is not what is stored. Look at it again before you decide.",
    "over": "The policy in force lets less be approved beforehand than this. Write it anew.",
    "past": "Its last day is over, so there is nothing to put in force.",
    "reason_needed": "Say why: it stays in the record, and whoever looks at this later reads it.",
    "someone_else": "This page was opened under another login, so nothing was changed.",
}
WORDS = {
    StandingState.ASKED: "not in force yet",
    StandingState.IN_FORCE: "in force",
    StandingState.DECLINED: "declined",
    StandingState.WITHDRAWN: "withdrawn",
    StandingState.REVOKED: "revoked",
}


def sentence(*, code: str, detail: Mapping[str, Any] | None = None) -> str:
    """The sentence for a code. Unknown codes say so plainly."""
    template = SENTENCES.get(code)
    if template is None:
        return f"This was refused ({code}). Nothing was changed."
    filled = {"group": "the group", "tool": "this tool", "state": "closed", **dict(detail or {})}
    if filled["state"] in WORDS:
        filled["state"] = WORDS[StandingState(filled["state"])]
    return template.format_map(filled)


def whom(*, standing: StandingApproval) -> str:
    """What it is for: `the account is ACC-1093 and the reason is sla_breach`."""
    return " and ".join(f"{NAMES.get(name, name)} is {value}" for name, value in sorted(standing.only.items()))


def each(*, standing: StandingApproval) -> str:
    """`Up to $1,500.00 USD each; together $5,000.00 USD and 4 actions a month`."""
    one, total = (Money(minor, standing.currency) for minor in (standing.each_minor, standing.total_minor))
    times = f"{standing.count} action{'s' if standing.count != 1 else ''}"
    return f"Up to {one} each; together {total} and {times} {Period(standing.period).label}"


def consequences(*, standing: StandingApproval) -> list[str]:
    """What follows from putting it in force."""
    return [
        f"Where {whom(standing=standing)}, {standing.tool} is carried out without asking anybody. "
        f"{each(standing=standing)}.",
        "What is under way or not confirmed counts as used, and is given back only when it is proved that nothing "
        "happened. Beyond the limits people are asked, as they are today.",
        "Everything else is checked as always: what the policy refuses stays refused, running totals hold, and nothing "
        "changes for an action whose facts are not known.",
        f"{standing.by} answer{'' if len(standing.people) > 1 else 's'} for it by name. It can be revoked at any "
        "moment, and counts no more once somebody behind it loses the right.",
    ]


REVOKED = (
    "From the moment this is recorded nothing more is sent under it; runs that have not sent yet ask people again. "
    "What was sent before stays done, or is asked about and settled. It cannot be put in force again: a new one is"
    " written."
)
