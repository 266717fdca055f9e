"""Trying a policy: what a document would have said of the proposals there have been, beside what happened.

Read-only, which the database holds; bounded by a number of proposals and by time. Each proposal is judged on the facts
as they were when it was made and on the running totals as they stood then. Whether an action was done already, or the
run was granted the tool, is no policy's question and is left out.
"""

import datetime as dt
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import connection, transaction
from django.db.models import Min

from agentops import policy_now
from agentops.workflows.registry import workflow
from approvals import confirming, policy_text
from approvals.evaluation import TotalNeed, Verdict, evaluate
from approvals.models import ApprovalRequest, Decision, Policy, StandingApproval, Tally
from approvals.requirement import StageNeed
from reconciliation import windows
from reconciliation.models import Reservation
from runs import clock, record
from runs.models import Event, Evidence, Proposal
from runs.money import Money

MOST = 500
CHUNK = 20
COLUMNS = ("What happened", "In force now", "This draft")
Effect = Literal["allow", "ask", "deny", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`effect` none: it was never judged. `asked` are the stages where people are asked: groups and how many; `more` is
    what is asked of them beside that, in words; `beforehand`: they had answered by a standing approval."""

    effect: Effect
    text: str = ""
    asked: tuple[tuple[tuple[str, ...], int], ...] = ()
    more: tuple[str, ...] = ()
    beforehand: bool = False

    @property
    def group(self) -> str:
        """`manager`, or `2 of finance, 1 of controllers`."""
        if len(self.asked) == 1:
            return " or ".join(self.asked[0][0])
        return ", ".join(f"{quorum} of {' or '.join(groups)}" for groups, quorum in self.asked)

    @property
    def quorum(self) -> int:
        """How many, where one stage asks; of several the words say it."""
        return self.asked[0][1] if len(self.asked) == 1 else 0

    def same_as(self, other: "Outcome") -> bool:
        """Whether it leads to the same: the words of the reason do not count."""
        mine = (self.effect, self.asked, self.more, self.beforehand)
        return mine == (other.effect, other.asked, other.more, other.beforehand)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One proposal: what happened, what the version in force says of it, and what the document would say."""

    proposal: Proposal
    request_id: uuid.UUID | None
    happened: Outcome
    in_force: Outcome
    would: Outcome

    @property
    def changes(self) -> bool:
        return not self.in_force.same_as(self.would)

    def columns(self) -> tuple[tuple[str, Outcome], ...]:
        return tuple(zip(COLUMNS, (self.happened, self.in_force, self.would), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """`wanted` proposals were there to look at and `looked` were looked at, the newest first, before the time was up.
    `unreadable` of them cannot be judged any more. `new_totals` are running totals that nothing was counted in.
    `sums_since`, where a rule looks at sums, is when the first amount that counts in them was written down."""

    tried: list[Tried]
    wanted: int
    looked: int
    unreadable: int
    new_totals: list[str] = field(default_factory=list)
    sums_since: dt.datetime | None = None

    @property
    def complete(self) -> bool:
        return self.looked == self.wanted


def try_document(*, policy: Policy, document: dict[str, Any], tools: Iterable[str], last: int, seconds: float) -> Trial:
    """Judge the last proposals (at most `MOST`) of the tools by the document and by the version in force."""
    until = time.monotonic() + seconds
    active = policy.active.rules if policy.active else {}
    tried: list[Tried] = []
    looked = unreadable = 0
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found = Proposal.objects.filter(tool__in=list(tools)).order_by("-created_at", "-pk")
        ids = list(found.values_list("pk", flat=True)[: min(last, MOST)])
        for start in range(0, len(ids), CHUNK):
            if time.monotonic() >= until:
                break
            chunk = ids[start : start + CHUNK]
            judged = list(_judged(chunk, active, document))
            looked += len(chunk)
            unreadable += len(chunk) - len(judged)
            tried += judged
    return Trial(
        tried=tried,
        wanted=len(ids),
        looked=looked,
        unreadable=unreadable,
        new_totals=_new_totals(active, document),
        sums_since=_sums_since(document, tools),
    )


def _sums_since(document: dict[str, Any], tools: Iterable[str]) -> dt.datetime | None:
    if not any(rule.get("window") for rule in document.get("rules", [])):
        return None
    return Tally.objects.filter(tool__in=list(tools)).aggregate(first=Min("at"))["first"] or clock.now()


def _new_totals(active: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Totals that count otherwise than those in force, by name: what was spent before is not in them."""
    had = {(one["id"], tuple(one["key"])) for one in active.get("totals", [])}
    return [one["text"] for one in document.get("totals", []) if (one["id"], tuple(one["key"])) not in had]


def _judged(ids: list[uuid.UUID], active: dict[str, Any], document: dict[str, Any]) -> Iterator[Tried]:
    proposals = list(Proposal.objects.filter(pk__in=ids).select_related("run__agent").order_by("-created_at", "-pk"))
    given = _given(proposals)
    happened, requests = _happened(proposals, given)
    facts = _facts(proposals)
    said: list[tuple[Proposal, Verdict, Verdict]] = []
    for one in proposals:
        try:
            entry = workflow(one.run.workflow, one.run.workflow_version)
            variables = policy_now.variables(run=one.run, known=entry, action=one.action(), facts=facts[one.pk])
        except (LookupError, ValueError, TypeError, AttributeError):  # the workflow or its facts are of another time
            continue
        counted = windows.counted(proposal=one, as_of=one.created_at)
        verdicts = (
            evaluate(document=active, variables=variables, counted=counted),
            evaluate(document=document, variables=variables, counted=counted),
        )
        said.append((one, *verdicts))
    used = _Used(need.key for _, *verdicts in said for verdict in verdicts for need in verdict.totals)
    for one, before, after in said:
        yield Tried(
            proposal=one,
            request_id=requests.get(one.pk),
            happened=happened.get(one.pk, Outcome(effect="none", text="It never came before the policy.")),
            in_force=_outcome(before, one, used, given),
            would=_outcome(after, one, used, given),
        )


def _given(proposals: list[Proposal]) -> dict[uuid.UUID, StandingApproval]:
    """The standing approvals that answered for them, by proposal."""
    found = Decision.objects.filter(proposal__in=proposals, kind=Decision.Kind.STANDING)
    people = found.select_related("standing__asked_by", "standing__granted_by")
    return {one.proposal_id: one.standing for one in people if one.standing is not None}


def _outcome(verdict: Verdict, proposal: Proposal, used: "_Used", given: dict[uuid.UUID, StandingApproval]) -> Outcome:
    if verdict.effect == "deny":
        return Outcome(effect="deny", text=verdict.text)
    for need in verdict.totals:
        if used.before(need, proposal) + need.amount_minor > need.limit_minor:
            return Outcome(effect="deny", text=f"{need.label} would have been exceeded.")
    text = "; ".join(rule["text"] for rule in verdict.rules)
    if verdict.need is None:
        return Outcome(effect="allow", text=text)
    wanted, standing = verdict.need, given.get(proposal.pk)
    answered = (
        standing is not None
        and wanted.standing is not None
        and wanted.group == standing.group
        and wanted.quorum <= len(standing.people)
        and standing.total_minor <= wanted.standing.get(standing.currency, 0)
    )
    asked = tuple((stage.groups, stage.quorum) for stage in wanted.chain)
    more = _more(wanted.chain, in_order=wanted.in_order, confirm=wanted.confirm, proposal=proposal)
    return Outcome(effect="ask", text=text, asked=asked, more=more, beforehand=answered)


def _more(stages: Sequence[StageNeed], *, in_order: bool, confirm: str, proposal: Proposal) -> tuple[str, ...]:
    """In which order, of whom, how many who say no end it, and what each approval takes."""
    said = ["one after the other"] if in_order and len(stages) > 1 else []
    for stage in stages:
        own = policy_text.person(one={"person": stage.person.stored()})
        own += [policy_text.rejecting(at=stage.reject_at)] if stage.reject_at > 1 else []
        said += [f"{stage.name}: {', '.join(own)}" if len(stages) > 1 else ", ".join(own)] if own else []
    if confirm != confirming.CLICK:
        money = None if proposal.amount_minor is None else Money(proposal.amount_minor, proposal.currency)
        said.append(f"each approval takes {confirming.words(level=confirm, money=money)}")
    return tuple(said)


class _Used:
    """How much of running totals was used at a moment, from what operations hold or held of them."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._held: dict[str, list[Reservation]] = {}
        for held in Reservation.objects.filter(allowance_id__in=set(keys)).select_related("operation"):
            self._held.setdefault(held.allowance_id, []).append(held)

    def before(self, need: TotalNeed, proposal: Proposal) -> int:
        """In minor units, just before the proposal was made and without its own operation."""
        at = proposal.created_at
        total = 0
        for held in self._held.get(need.key, []):
            operation = held.operation
            given_back = held.state == Reservation.State.RELEASED and (
                operation.settled_at is None or operation.settled_at <= at
            )
            if operation.created_at < at and operation.proposal_id != proposal.pk and not given_back:
                total += held.amount_minor
        return total


def _facts(proposals: list[Proposal]) -> dict[uuid.UUID, dict[str, Evidence]]:
    """For each proposal the newest reading of its run from before it was made, by kind of fact."""
    by_run: dict[uuid.UUID, list[Evidence]] = {}
    for piece in Evidence.objects.filter(run__in={one.run_id for one in proposals}):
        by_run.setdefault(piece.run_id, []).append(piece)
    found = {}
    for one in proposals:
        pieces = [piece for piece in by_run.get(one.run_id, []) if piece.retrieved_at <= one.created_at]
        last = max((piece.reading for piece in pieces), default=one.reading)
        rests_on = set(one.rests_on)
        newest = {piece.kind: piece for piece in pieces if piece.reading == last}
        found[one.pk] = newest | {piece.kind: piece for piece in pieces if str(piece.pk) in rests_on}
    return found


def _happened(
    proposals: list[Proposal], given: dict[uuid.UUID, StandingApproval]
) -> tuple[dict[uuid.UUID, Outcome], dict[uuid.UUID, uuid.UUID]]:
    """What became of each at the policy, and the request that people were asked, by proposal."""
    found: dict[uuid.UUID, Outcome] = {}
    requests: dict[uuid.UUID, uuid.UUID] = {}
    streams = [record.stream_of(run_id=run) for run in {one.run_id for one in proposals}]
    wanted = {str(one.pk): one.pk for one in proposals}
    for event in Event.objects.filter(stream__in=streams, kind="policy.checked").order_by("stream", "seq"):
        key = wanted.get(str(event.data.get("proposal")))
        if key is not None:
            reason = str(event.data.get("reason") or "It was refused for another reason than the policy.")
            found[key] = Outcome(effect="deny", text=reason)
    for decision in Decision.objects.filter(proposal__in=proposals, kind=Decision.Kind.POLICY):
        found[decision.proposal_id] = Outcome(effect="allow", text=_texts(decision.rules))
    for answered in Decision.objects.filter(proposal__in=list(given), kind=Decision.Kind.STANDING):
        standing = given[answered.proposal_id]
        text = f"{_texts(answered.rules)}; approved beforehand by {standing.by}"
        people = (((standing.group,), len(standing.people)),)
        found[answered.proposal_id] = Outcome(effect="ask", text=text, asked=people, beforehand=True)
    for asked in (
        ApprovalRequest.objects.filter(proposal__in=proposals)
        .select_related("proposal")
        .prefetch_related("stages")
        .order_by("created_at")
    ):
        requests[asked.proposal_id] = asked.pk
        stages = [one for one in asked.stages.all() if one.added_by_id is None]
        found[asked.proposal_id] = Outcome(
            effect="ask",
            text=_texts(asked.rules),
            asked=tuple((tuple(one.groups), one.quorum) for one in stages),
            more=_more(
                [one.need for one in stages],
                in_order=any(one.in_turn for one in stages),
                confirm=asked.confirm,
                proposal=asked.proposal,
            ),
        )
    return found, requests


def _texts(rules: list[dict[str, str]]) -> str:
    return "; ".join(rule["text"] for rule in rules)
