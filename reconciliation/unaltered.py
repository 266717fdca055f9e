"""Is what is about to be sent still what was proposed, shown and allowed? Worked out again from the stored rows.

Nobody who uses the product can change these rows; whoever administers the database can, and then nothing is sent.
Reads only; the caller holds the locks.
"""

from approvals.binding import binding_digest, page_digest
from approvals.services.requests import Authority
from reconciliation.models import Operation
from runs import keeping
from runs.canonical import canonical_bytes, digest
from runs.models import Proposal
from runs.tools.base import Contract


def altered(*, proposal: Proposal, contract: Contract, authority: Authority, operation: Operation | None) -> str:
    """The first thing that is not as it was decided, in words; empty when all is."""
    return (
        _action(proposal, contract)
        or _evidence(proposal, authority)
        or _page(authority)
        or ("" if operation is None else _operation(operation, proposal, authority))
    )


def _action(proposal: Proposal, contract: Contract) -> str:
    try:
        worked_out = proposal.action().digest()
    except (ValueError, AttributeError):  # not even flat text any more
        worked_out = ""
    if worked_out != proposal.action_digest:
        return "the proposed action"
    try:
        money, key = contract.money(proposal.effect), contract.business_key(proposal.effect)
    except (LookupError, ValueError):  # no effect of this tool any more
        return "the proposed action"
    if (proposal.amount_minor, proposal.currency) != ((money.minor, money.currency) if money else (None, "")):
        return "the proposal's amount"
    if proposal.business_key != key:
        return "what the proposal is for"
    if not proposal.identity.endswith(f"/{proposal.tool}/{proposal.pk}"):
        return "the proposal's identity"
    return ""


def _evidence(proposal: Proposal, authority: Authority) -> str:
    pieces = keeping.pieces(run_id=proposal.run_id, ids=proposal.rests_on)
    if any(digest(one.content) != one.content_digest for one in pieces):
        return "a fact that the decision rests on"
    rests_on = binding_digest(
        action_digest=proposal.action_digest,
        facts=[one.as_bound for one in pieces],
    )
    return "" if rests_on == authority.decision.binding_digest else "a fact that the decision rests on"


def _page(authority: Authority) -> str:
    request = authority.request
    if request is None:
        return ""
    shown = page_digest(rows=request.page)
    seen = {(vote.page_digest, vote.binding_digest) for vote in authority.votes}
    same = shown == request.page_digest and seen <= {(shown, authority.decision.binding_digest)}
    return "" if same else "what the voters had before them"


def _operation(operation: Operation, proposal: Proposal, authority: Authority) -> str:
    """An operation is the proposal's, under the decision it spent, and every attempt sends the same bytes."""
    if operation.decision_id != authority.decision.pk or operation.tool != proposal.tool:
        return "the operation's decision"
    if operation.effect != proposal.effect or operation.identity != proposal.identity:
        return "the operation's effect"
    sent = set(operation.attempts.values_list("request", flat=True))
    return "" if sent <= {canonical_bytes(operation.effect).decode()} else "the bytes of an earlier attempt"
