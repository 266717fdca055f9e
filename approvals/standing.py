"""Which standing approval covers an action, and what one of them still allows. Reads only.

One that cannot be judged covers nothing: an absent value matches no condition, silence and errors are a no.
"""

import datetime as dt
import unicodedata
from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from approvals import objections, rights
from approvals.evaluation import TotalNeed, Verdict
from approvals.models import Allowance, StandingApproval
from approvals.models.standing import Period, StandingState
from approvals.requirement import of_one_group
from runs import clock
from runs.models import Proposal, Run

RESOURCES = ("account", "ticket", "incident")  # one of them is always named
CONDITIONS = (*RESOURCES, "workflow", "reason")
PREFIX = "standing/"


def find(*, run: Run, proposal: Proposal, verdict: Verdict, variables: Mapping[str, Any]) -> StandingApproval | None:
    """The one that ends first of those that cover the action the policy asks people about. Sending looks again."""
    if verdict.need is None or verdict.need.standing is None or proposal.amount_minor is None:
        return None
    now = clock.now()
    known = StandingApproval.objects.select_related("asked_by", "granted_by").filter(
        Q(starts_at__lte=now, ends_at__gt=now),
        state=StandingState.IN_FORCE,
        tool=proposal.tool,
        currency=proposal.currency,
        each_minor__gte=proposal.amount_minor,
        group=verdict.need.group,
    )
    for one in known.order_by("ends_at", "id"):
        if unfit(standing=one, run=run, proposal=proposal, verdict=verdict, variables=variables):
            continue
        wanted = need(standing=one, amount_minor=proposal.amount_minor)
        if fits(row=Allowance.objects.filter(pk=wanted.key).first(), need=wanted):
            return one
    return None


def unfit(
    *, standing: StandingApproval, run: Run, proposal: Proposal, verdict: Verdict, variables: Mapping[str, Any]
) -> str:
    """Why it does not cover this action now, apart from what is used of it, or nothing.

    For a decision that rests on it the caller holds its row and its people's.
    """
    asked = verdict.need
    if verdict.effect == "allow":
        asked = None  # nobody is asked any more, so only its own terms count
    elif asked is not None and not of_one_group(stages=asked.chain, group=asked.group):
        return "several stages, groups or people of a certain kind are asked, which nobody answers beforehand"
    elif verdict.effect != "ask" or asked is None or asked.standing is None:
        return "the policy lets no approval that was given beforehand answer this"
    now = clock.now()
    if standing.state != StandingState.IN_FORCE:
        return f"the {standing} has been revoked" if standing.state == StandingState.REVOKED else "it is not in force"
    if not standing.starts_at <= now < standing.ends_at:
        return f"the {standing} is over" if now >= standing.ends_at else f"the {standing} has not begun"
    if standing.tool != proposal.tool or standing.currency != proposal.currency:
        return f"the {standing} is for something else"
    if proposal.amount_minor is None or proposal.amount_minor > standing.each_minor:
        return f"the {standing} does not reach to this amount"
    for name, wanted in standing.only.items():
        value = variables.get(name)
        if not isinstance(value, str) or not value or unicodedata.normalize("NFC", value) != wanted:
            return f"the {standing} is for {name} {wanted}, and this is not"
    if asked is not None and asked.standing is not None:
        if standing.group != asked.group:
            return f"the {standing} is given by {standing.group}, and {asked.group} is asked"
        if standing.total_minor > asked.standing.get(standing.currency, 0):
            return f"the policy no longer lets so much be approved beforehand as the {standing} does"
    return _people(standing, run, asked.quorum if asked is not None else 1)


def _people(standing: StandingApproval, run: Run, quorum: int) -> str:
    """Each of them must be entitled still, none may have a part in the run, and they must be as many as are asked."""
    users = {one.user for one in standing.people if one.user is not None}
    entitled = rights.still_entitled(user_ids=[user.pk for user in users], group=standing.group)
    if len(entitled) < len(standing.people):
        return f"somebody behind the {standing} has lost the right since"
    if any(objections.involvement(run=run, user=user) is not None for user in users):
        return f"somebody behind the {standing} has a part in this run"
    return "" if len(users) >= quorum else f"{quorum} people are asked, and {len(users)} stand behind the {standing}"


def period_of(*, standing: StandingApproval, at: dt.datetime) -> str:
    """The name of the period a moment is in, by UTC: 2026-11-29, 2026-W48, 2026-11; empty where there is one in all."""
    utc = at.astimezone(dt.UTC)
    if standing.period == Period.WEEK:
        year, week, _ = utc.isocalendar()
        return f"{year}-W{week:02d}"
    return {Period.DAY: f"{utc:%Y-%m-%d}", Period.MONTH: f"{utc:%Y-%m}"}.get(Period(standing.period), "")


def key_of(*, standing: StandingApproval, period: str) -> str:
    return f"{PREFIX}{standing.pk}/{period}" if period else f"{PREFIX}{standing.pk}"


def need(*, standing: StandingApproval, amount_minor: int) -> TotalNeed:
    """The room an action needs in it now; the period is that of the database's clock."""
    period = period_of(standing=standing, at=clock.now())
    label = f"Standing approval {standing.short}" + (f", {period}" if period else "")
    return TotalNeed(
        key=key_of(standing=standing, period=period),
        label=label,
        currency=standing.currency,
        limit_minor=standing.total_minor,
        amount_minor=amount_minor,
        count_limit=standing.count,
    )


def fits(*, row: Allowance | None, need: TotalNeed) -> bool:
    """Whether the total has room for it; what is reserved, running and not confirmed counts."""
    if row is None:
        return need.amount_minor <= need.limit_minor and need.count_limit != 0
    if row.reserved_minor + row.settled_minor + need.amount_minor > min(row.limit_minor, need.limit_minor):
        return False
    return need.count_limit is None or row.reserved_count + row.settled_count + 1 <= need.count_limit
