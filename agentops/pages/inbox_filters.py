"""What the list of approvals can be narrowed by, and how its filters read: what to choose from, and what is chosen."""

from dataclasses import dataclass
from typing import Any

from agentops.pages import walk
from approvals.lists import Listing
from approvals.models import Policy, PolicyTool
from runs import queries, words
from runs.money import parse_amount
from runs.tools.registry import UnknownTool, contract

MOST_ASKERS = 100
DUE_WORDS = {"hour": "within the hour", "day": "within a day", "week": "within a week"}
AGE_WORDS = {"hour": "for over an hour", "day": "for over a day", "week": "for over a week"}
ORDER_WORDS = {"": "Soonest deadline", "new": "Newest", "old": "Oldest", "large": "Largest amount"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One select of the form: `options` are (value, word), `chosen` the value in the address."""

    name: str
    label: str
    anything: str
    options: list[tuple[str, str]]
    chosen: str

    @property
    def word(self) -> str:
        """What is chosen, in words; a value that is no longer on offer as it stands."""
        return dict(self.options).get(self.chosen, self.chosen)


def choices(listing: Listing) -> list[Choice]:
    """In the order of the form. A fixed number of queries."""
    policies = list(Policy.objects.filter(active__isnull=False).select_related("active").order_by("name"))
    asking = [(one, rule) for one in policies if one.active for rule in one.active.rules["rules"] if rule.get("ask")]
    groups = sorted({_first_group(rule["ask"]) for _, rule in asking} | set(words.GROUP_WORDS))
    rules = [(one.slug, f"{one.name}: any rule") for one in policies]
    rules += [(f"{one.slug}/{rule['id']}", f"{one.name}: {rule['text']}") for one, rule in asking]
    given = (
        ("tool", "Action", "Any action", [(tool, _title(tool)) for tool in _tools()]),
        ("rule", "Policy and rule", "Any rule", sorted(rules, key=lambda one: one[1])),
        ("group", "Asked first of", "Any group", [(name, words.group(name)) for name in groups]),
        ("asker", "Started by", "Anybody", _askers()),
        ("due", "To be answered", "At any time", list(DUE_WORDS.items())),
        ("age", "Waiting", "However long", list(AGE_WORDS.items())),
        ("by", "Answered by", "Anybody or nobody", [("me", "you")]),
    )
    return [
        Choice(name=name, label=label, anything=anything, options=options, chosen=getattr(listing, name))
        for name, label, anything, options in given
    ]


def chips(listing: Listing, found: list[Choice]) -> list[dict[str, str]]:
    """What narrows the list, each in words, with the address of the list without it."""
    said: list[tuple[str, tuple[str, ...]]] = []
    if listing.q:
        said.append((f"“{listing.q}”", ("q",)))
    if listing.least:
        said.append((f"from {_money(listing, 'least')}", ("least",)))
    if listing.most:
        said.append((f"up to {_money(listing, 'most')}", ("most",)))
    if listing.currency and not (listing.least or listing.most):
        said.append((f"in {listing.currency}", ("currency", "order")))
    for one in found:
        if one.chosen:
            said.append((f"{one.label.lower()} {one.word}", (one.name,)))
    return [{"text": text, "without": walk.list_url(listing.without(*names))} for text, names in said]


def orders(listing: Listing) -> list[tuple[str, str]]:
    """What the list can be ordered by; decided ones have no deadline any more."""
    if listing.tab == "decided":
        return [("", "Decided last"), ("old", "Decided first"), ("large", "Largest amount")]
    if listing.tab == "all":
        return [("", "Newest"), ("old", "Oldest"), ("soon", "Soonest deadline"), ("large", "Largest amount")]
    return list(ORDER_WORDS.items())


def form(listing: Listing) -> dict[str, Any]:
    found = choices(listing)
    shown = [one for one in found if not (one.name == "by" and listing.tab == "mine")]
    if listing.tab == "decided":
        shown = [one for one in shown if one.name not in ("due", "age")]
    said = chips(listing, found)
    narrowed = len(said) - bool(listing.q)  # the search shows itself
    return {"choices": shown, "chips": said, "narrowed": narrowed, "orders": orders(listing)}


def _money(listing: Listing, name: str) -> str:
    return str(parse_amount(text=getattr(listing, name), currency=listing.currency))


def _tools() -> list[str]:
    return list(PolicyTool.objects.order_by("tool").values_list("tool", flat=True))


def _first_group(ask: dict[str, Any]) -> str:
    """What the filter compares with: the group by itself, or the first of the first stage in the order that requests
    keep them in."""
    return str(min(ask["stages"][0]["groups"]) if ask.get("stages") else ask["group"])


def _title(tool: str) -> str:
    try:
        return contract(tool).title
    except UnknownTool:  # governed already, and not there yet or no more
        return words.tool(tool)


def _askers() -> list[tuple[str, str]]:
    return [(str(one.pk), one.label) for one in queries.initiators(limit=MOST_ASKERS)]
