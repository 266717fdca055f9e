"""Which requests may be answered together, and why others may not. Reads only; every vote is checked again alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from django.contrib.auth.models import User

from approvals import confirming, freezes, queries
from approvals.models import ApprovalRequest, Vote
from approvals.words import ACCEPTED, sentence
from runs.money import Money

MOST = 50
CONFIRM_ON_PAGE = "confirm_on_page"  # also the code of the vote that comes without it
OUTLIER = 3  # so many times the median of the chosen, and it is looked at on its own

# what is said of requests that are left out; the codes of votes have their sentences in `approvals.words`
SENTENCES = {
    "other_kind": "It is of another kind than the others: another action, policy, rule or group. Answer it on its own.",
    "changed": "It has changed since it was first asked, so what changed has to be read. Open it.",
    "outlier": "Its amount is more than three times what is usual among these. Open it and look at it on its own.",
    CONFIRM_ON_PAGE: "Its rule wants the approval confirmed on its own page. Open it.",
    "busy": "Somebody else had it in hand for a minute. Your answer was not counted; open it and try again.",
    "broke_off": "Something unforeseen stopped it. Your answer was not counted; open it and try again.",
}
# the request is not, or no longer, what the person had before them
CHANGED = frozenset({"changed", "superseded", "page_differs", "out_of_date", "policy_changed", "unread_changes"})


def said(*, code: str, detail: dict[str, object]) -> str:
    """The sentence of a result of one request."""
    return SENTENCES.get(code) or sentence(code=code, detail=detail)


def standing(*, code: str) -> str:
    """ "voted", "changed" or "refused", or "" while there is no result."""
    if not code:
        return ""
    return "voted" if code in ACCEPTED else "changed" if code in CHANGED else "refused"


def kind(*, request: ApprovalRequest) -> str:
    """Requests of one kind share it: the same action, policy, rules, group and number of people."""
    rules = ",".join(sorted(rule["id"] for rule in request.rules))
    policy = request.policy_version.policy_id
    return f"{request.proposal.tool} {policy} {rules} {request.group} {request.quorum}"


def own_confirmation(*, request: ApprovalRequest) -> bool:
    """What the rule wants beyond a click, only the request's own page can take; the vote itself refuses it as well."""
    return bool(request.confirm != confirming.CLICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """`kept` go together; each of `left_out` stays, with the code of why."""

    kept: list[ApprovalRequest]
    left_out: list[tuple[ApprovalRequest, str]]

    @property
    def totals(self) -> list[Money]:
        """The sum in each currency, by its code."""
        sums: Counter[str] = Counter()
        for request in self.kept:
            if request.proposal.amount_minor is not None:
                sums[request.proposal.currency] += request.proposal.amount_minor
        return [Money(minor, currency) for currency, minor in sorted(sums.items())]

    @property
    def largest(self) -> list[Money]:
        """The largest of each currency, by its code."""
        most: dict[str, int] = {}
        for request in self.kept:
            minor, currency = request.proposal.amount_minor, request.proposal.currency
            if minor is not None:
                most[currency] = max(minor, most.get(currency, 0))
        return [Money(minor, currency) for currency, minor in sorted(most.items())]


def choose(*, user: User, requests: Sequence[ApprovalRequest], choice: str) -> Chosen:
    """Sort out those that this person may answer together. The kind is that of most of them. Only the state of each is
    judged here, so that the page can say it beforehand."""
    mine = set(
        queries.scope(user=user, tab="mine").filter(pk__in=[one.pk for one in requests]).values_list("pk", flat=True)
    )
    open_ones = [one for one in requests if one.pk in mine]
    kinds = Counter(kind(request=one) for one in open_ones)
    main = kinds.most_common(1)[0][0] if kinds else ""
    frozen = _frozen(open_ones) if choice == Vote.Choice.APPROVE else set()
    usual = _usual([one for one in open_ones if kind(request=one) == main])
    found = Chosen(kept=[], left_out=[])
    for one in requests:
        if one.pk not in mine:
            code = queries.may_vote(user=user, request=one) or "withdrawn"
        elif kind(request=one) != main:
            code = "other_kind"
        else:
            code = _alone(one, usual, frozen) if choice == Vote.Choice.APPROVE else ""
        if code:
            found.left_out.append((one, code))
        else:
            found.kept.append(one)
    return found


def _alone(request: ApprovalRequest, usual: dict[str, float], frozen: set[tuple[str, str]]) -> str:
    """Why this one is not approved together with others, or ""."""
    if (request.run.workflow, request.proposal.tool) in frozen:
        return freezes.FROZEN
    if own_confirmation(request=request):
        return CONFIRM_ON_PAGE
    if request.changes:
        return "changed"
    minor, limit = request.proposal.amount_minor, usual.get(request.proposal.currency)
    return "outlier" if minor is not None and limit is not None and minor > OUTLIER * limit else ""


def _usual(requests: Sequence[ApprovalRequest]) -> dict[str, float]:
    """The median amount by currency, of three or more."""
    amounts: dict[str, list[int]] = {}
    for request in requests:
        if request.proposal.amount_minor is not None:
            amounts.setdefault(request.proposal.currency, []).append(request.proposal.amount_minor)
    return {currency: median(found) for currency, found in amounts.items() if len(found) >= 3}


def _frozen(requests: Sequence[ApprovalRequest]) -> set[tuple[str, str]]:
    places = {(one.run.workflow, one.proposal.tool) for one in requests}
    return {one for one in places if freezes.over(workflow=one[0], tool=one[1]) is not None}
