"""One person's word on several requests, cast vote by vote by the relay, as `agentops.batches` does acts on runs.

Each vote is the same service call as a single one, with its own transaction and every check. The same word on the same
page counts once, so whoever goes on after a crash repeats nothing.
"""

import logging
import time

from django.db.models import Q

from agentops import hints, policy_now
from agentops.batches import AT_ONCE_SECONDS, MOST_TRIES, TRY_AGAIN
from approvals.models import BulkItem, BulkVote, Vote
from approvals.services import votes
from approvals.services.votes import VoteResult
from runs import clock
from runs.one_by_one import is_busy, is_gone

log = logging.getLogger(__name__)


def work_off(*, seconds: float = AT_ONCE_SECONDS) -> int:
    """Cast what is left of the votes, the oldest first, for about that long, and say how many had their result."""
    until, done = time.monotonic() + seconds, 0
    waiting = BulkVote.objects.filter(finished_at__isnull=True).select_related("principal__user")
    for word in waiting.order_by("created_at"):
        left = BulkItem.objects.filter(bulk=word, done_at__isnull=True)
        now_due = left.filter(Q(try_after__isnull=True) | Q(try_after__lte=clock.ClockTimestamp()))
        for item in now_due.order_by("tries", "id"):
            done += _cast(word, item)
            if time.monotonic() > until:
                break
        if not left.exists():
            BulkVote.objects.filter(pk=word.pk, finished_at__isnull=True).update(finished_at=clock.now())
        if time.monotonic() > until:
            break
    if done:
        hints.lists_moved()
    return done


def _cast(word: BulkVote, item: BulkItem) -> bool:
    """False when the request is left for another time, after the others: somebody else has its run locked."""
    open_one = BulkItem.objects.filter(pk=item.pk, done_at__isnull=True)
    try:
        result = _vote(word, item)
        open_one.update(code=result.code, detail=result.detail, done_at=clock.now())
    except Exception as problem:  # one request that nobody foresaw must not hold up the others
        if is_gone(problem=problem):
            raise
        if is_busy(problem=problem) and item.tries < MOST_TRIES:
            open_one.update(tries=item.tries + 1, try_after=clock.now() + TRY_AGAIN)
            return False
        if not is_busy(problem=problem):
            log.exception("a vote on request %s broke off", item.request_id)
        open_one.update(code="busy" if is_busy(problem=problem) else "broke_off", done_at=clock.now())
    return True


def _vote(word: BulkVote, item: BulkItem) -> VoteResult:
    user = word.principal.user
    if user is None:
        raise ValueError("votes are a person's")
    return votes.cast(
        request_id=item.request_id,
        user=user,
        choice="approve" if word.choice == Vote.Choice.APPROVE else "reject",
        comment=word.comment,
        page_digest=item.page_digest,
        acknowledged=False,
        authenticated_by=word.authenticated_by,
        channel="page",
        reevaluate=policy_now.verdict,
    )
