"""Chain and history of a request: everything that was asked, opened, answered and refused, in one order."""

from typing import Any

from agentops import asked
from agentops.pages.became import Outcome
from agentops.pages.chain_events import Entry, happened
from approvals import words as refusal_words
from approvals.models import ApprovalRequest, Refusal, Viewing, Vote
from approvals.models.request import RequestState
from reconciliation.models import Operation
from runs.models import Principal, Proposal
from runs.money import Money

LONGEST_CHAIN = 50


def versions(*, request: ApprovalRequest) -> list[ApprovalRequest]:
    """The request and those it replaced, the oldest first."""
    found: list[ApprovalRequest] = [request]
    while found[-1].supersedes_id and len(found) < LONGEST_CHAIN:
        found.append(
            ApprovalRequest.objects.select_related("proposal__proposer", "closed_by").get(pk=found[-1].supersedes_id)
        )
    return found[::-1]


def _what(proposal: Proposal) -> str:
    return str(Money(proposal.amount_minor, proposal.currency)) if proposal.amount_minor is not None else proposal.tool


_CLOSED: dict[str, tuple[str, str, str]] = {
    RequestState.EXPIRED: ("clock", "orange", "the time to answer ran out"),
    RequestState.SUPERSEDED: ("arrow-right-left", "amber", "this request was out of date"),
    RequestState.WITHDRAWN: ("circle-slash", "slate", "the request was withdrawn"),
    RequestState.SENT_BACK: ("undo-2", "amber", "sent it back"),
    RequestState.STALE: ("arrow-right-left", "amber", "the approval was out of date before it was used"),
    RequestState.REVOKED: ("circle-slash", "slate", "the approval no longer counted"),
}


def _first_asked(request: ApprovalRequest) -> str:
    """Those who were asked at once, before anybody was added."""
    first = [one for one in asked.stages(request) if not one.in_turn and one.added_by_id is None]
    return " and ".join(asked.stage_words(one) for one in first) or asked.group_words(request.group)


def _asked(request: ApprovalRequest) -> list[Entry]:
    entries = [
        Entry(
            at=request.created_at,
            icon="hand",
            colour="amber",
            who=request.proposal.proposer.label,
            text=f"asked {_first_asked(request)} for {_what(request.proposal)}",
            note="; ".join(f"{change['label']}: {change['old']} → {change['new']}" for change in request.changes),
        )
    ]
    if request.closed_at and request.state in _CLOSED:
        icon, colour, text = _CLOSED[request.state]
        person = request.closed_by is not None and request.closed_by.kind == Principal.Kind.PERSON
        who = str(request.closed_by) if person or request.state == RequestState.SENT_BACK else "System:"
        if person and request.state == RequestState.WITHDRAWN:
            text = "withdrew the request"
        elif person and request.state == RequestState.SUPERSEDED:
            text = "proposed another amount"
        entries.append(
            Entry(at=request.closed_at, icon=icon, colour=colour, who=who, text=text, note=request.close_reason)
        )
    return entries


def _answers(ids: list[Any]) -> list[Entry]:
    votes = Vote.objects.filter(request__in=ids).select_related("principal", "instead_of")
    return [
        Entry(
            at=vote.at,
            icon="check" if vote.choice == Vote.Choice.APPROVE else "x",
            colour="green" if vote.choice == Vote.Choice.APPROVE else "red",
            who=vote.whose,
            text="approved" if vote.choice == Vote.Choice.APPROVE else "rejected",
            note=vote.comment,
        )
        for vote in votes
    ]


def _seen(ids: list[Any]) -> list[Entry]:
    opened = Viewing.objects.filter(request__in=ids).select_related("principal")
    return [Entry(at=one.at, icon="eye", who=one.principal.label, text="opened it") for one in opened]


# what would have changed the request; a comment or a claim that was refused is in the run's record alone
_TRIED = {"": "decide", "send_back": "send it back", "withdraw": "withdraw it", "another_amount": "propose an amount"}


def _turned_down(ids: list[Any]) -> list[Entry]:
    refusals = Refusal.objects.filter(request__in=ids).select_related("principal").order_by("-at")[:30]
    return [
        Entry(
            at=refusal.at,
            icon="shield-alert",
            who=refusal.principal.label,
            text=f"tried to {_TRIED[refusal.detail.get('act', '')]} and was refused",
            note=refusal_words.sentence(code=refusal.code, detail=refusal.detail),
        )
        for refusal in refusals
        if refusal.detail.get("act", "") in _TRIED
    ]


def history(*, request: ApprovalRequest, operation: Operation | None, outcome: Outcome) -> list[Entry]:
    """All entries over the whole chain, the oldest first; what became of it is the last."""
    chain = versions(request=request)
    ids = [one.pk for one in chain]
    entries = [entry for one in chain for entry in _asked(one)]
    entries += _answers(ids) + _seen(ids) + _turned_down(ids) + happened(requests=chain)
    entries.sort(key=lambda entry: entry.at)
    if operation is not None:
        entries.append(
            Entry(
                at=operation.settled_at or operation.unknown_since or operation.created_at,
                icon=outcome.look.icon,
                colour=outcome.look.colour,
                who=outcome.look.word + ":",
                text=outcome.sentence,
            )
        )
    return entries
