"""Writing down one person's word on several requests; the votes are cast one by one, by `agentops.bulk_votes`."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from approvals import bulk, queries, rights
from approvals.models import ApprovalRequest, BulkItem, BulkVote, Vote
from approvals.services.votes import COMMENT_LENGTH
from approvals.words import is_blank, storable
from runs import clock
from runs.nudging import nudge_relay
from runs.services import principals


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """`code` is ok, or a refusal: no_right, reason_needed, comment_too_long, none_chosen, too_many, not_yours (the key
    belongs to somebody else's)."""

    code: str
    bulk: BulkVote | None = None


def start(
    *,
    key: uuid.UUID,
    user: User,
    choice: str,
    comment: str,
    digests: Mapping[uuid.UUID, str],
    authenticated_by: str,
) -> BulkResult:
    """Write down the word on each of those requests, with the digest of what was shown of it. The same `key` again is
    the same word: nothing is written twice. What may not be answered together has its result at once, the rest when the
    relay comes to it. One durable transaction. Raises ValueError for a choice that does not exist."""
    if choice not in Vote.Choice.values:
        raise ValueError("choice: write approve or reject")
    comment = storable(text=comment)
    if choice == Vote.Choice.REJECT and is_blank(text=comment):
        return BulkResult(code="reason_needed")
    if len(comment) > COMMENT_LENGTH:
        return BulkResult(code="comment_too_long")
    if not digests or len(digests) > bulk.MOST:
        return BulkResult(code="too_many" if digests else "none_chosen")
    with transaction.atomic(durable=True):
        if (before := _before(key, user)) is not None:
            return before
        if not rights.may_vote_at_all(user=user):  # looked at again for every vote
            return BulkResult(code="no_right")
        found = list(ApprovalRequest.objects.filter(pk__in=digests).select_related(*queries.SHOWN).order_by("id"))
        if not found:
            return BulkResult(code="none_chosen")
        chosen = bulk.choose(user=user, requests=found, choice=choice)
        made = BulkVote(
            id=key,
            principal=principals.of_user(user=user),
            choice=choice,
            comment=comment,
            authenticated_by=storable(text=authenticated_by)[:200],
            total=len(found),
        )
        try:
            with transaction.atomic():
                made.save(force_insert=True)
        except (
            IntegrityError
        ):  # the form posted twice at once: no lock on the person, whom a vote holds after a request
            before = _before(key, user)
            if before is None:
                raise
            return before
        _write_items(made, chosen, digests)
        nudge_relay()
    return BulkResult(code="ok", bulk=made)


def _before(key: uuid.UUID, user: User) -> BulkResult | None:
    """What the same key was the first time."""
    found = BulkVote.objects.select_related("principal").filter(pk=key).first()
    if found is None:
        return None
    mine = found.principal.user_id == user.pk
    return BulkResult(code="ok" if mine else "not_yours", bulk=found if mine else None)


def _write_items(made: BulkVote, chosen: bulk.Chosen, digests: Mapping[uuid.UUID, str]) -> None:
    """Those for which the page itself has the answer are done; a state that may have moved is the vote's to judge."""
    left = {one.pk: code for one, code in chosen.left_out if code in bulk.SENTENCES}
    BulkItem.objects.bulk_create(
        BulkItem(
            bulk=made,
            request=one,
            page_digest=storable(text=digests[one.pk])[:64],
            code=left.get(one.pk, ""),
            done_at=clock.now() if one.pk in left else None,
        )
        for one in [*chosen.kept, *(one for one, _ in chosen.left_out)]
    )
