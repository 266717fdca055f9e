"""Putting a draft in force: a second person, who wrote none of it, publishes exactly what they had before them."""

import uuid
from typing import Any

from django.db import transaction

from approvals.models import DraftRevision, Policy, PolicyDraft, PolicyVersion
from approvals.models.draft import OPEN, DraftState
from approvals.rules import PolicyDocument
from approvals.services import drafts, policies
from approvals.services.drafts import DraftResult
from approvals.services.policies import PolicyInvalid
from runs import clock
from runs.canonical import digest
from runs.models import Principal


def seen_digest(*, draft: PolicyDraft, revision: DraftRevision, in_force: PolicyVersion | None) -> str:
    """What the second person has before them: posted back by the page and compared under the locks."""
    return digest(
        {
            "draft": str(draft.pk),
            "revision": revision.number,
            "document": revision.digest,
            "tools": revision.tools,
            "note": revision.note,
            "in_force": str(in_force.pk) if in_force else "",
        }
    )


def wrote(*, draft: PolicyDraft, principal: Principal | None) -> bool:
    """Whether this person had a part in it: saved any revision of it, or asked for its publication."""
    if principal is None:
        return False
    return draft.asked_by_id == principal.pk or draft.revisions.filter(author=principal).exists()


def publish(*, draft_id: uuid.UUID, principal: Principal, seen: str) -> DraftResult:
    """Make the draft's newest revision the next version in force. `seen` is the `seen_digest` of the page.

    Refusals: no_right, not_a_person, closed, own_draft, not_asked, in_force_changed, draft_changed, invalid (groups and
    tools as they are now). Raises PolicyDraft.DoesNotExist.
    """
    with transaction.atomic(durable=True):
        code = drafts.not_entitled(principal=principal, permission=drafts.PUBLISH)
        found = PolicyDraft.objects.select_related("policy").get(pk=draft_id)
        # the policy before its draft: whoever reads the version in force under a lock, to decide or send, goes first
        policy = Policy.objects.select_for_update(of=("self",)).select_related("active").get(pk=found.policy_id)
        draft = drafts.lock_draft(draft_id=draft_id)
        last = drafts.newest(draft=draft)
        detail: dict[str, Any] = {}
        if not code:
            code, detail = _objection(draft, last, policy, principal, seen)
        if code:
            return drafts.refuse(code, act="publish", policy=policy, principal=principal, **detail)
        problems = drafts.publishable(draft=draft)
        if problems:
            return drafts.refuse("invalid", act="publish", policy=policy, principal=principal, problems=problems)
        try:
            with transaction.atomic():  # all of it, or the refusal alone
                version = _put_in_force(draft, last, policy, principal)
        except PolicyInvalid as error:  # another policy has taken one of the tools just now
            return drafts.refuse("invalid", act="publish", policy=policy, principal=principal, problems=error.errors)
    return DraftResult(code="ok", draft=draft, version=version)


def _objection(
    draft: PolicyDraft, last: DraftRevision, policy: Policy, principal: Principal, seen: str
) -> tuple[str, dict[str, Any]]:
    if draft.state not in OPEN:
        return "closed", drafts.closing(draft=draft)
    if wrote(draft=draft, principal=principal):
        return "own_draft", {}
    if draft.based_on_id != policy.active_id:
        return "in_force_changed", {"version": str(policy.active) if policy.active else ""}
    if draft.state != DraftState.ASKED:
        return "not_asked", {"by": last.author.label}
    if seen != seen_digest(draft=draft, revision=last, in_force=policy.active):
        return "draft_changed", {"by": last.author.label, "revision": last.number}
    return "", {}


def _put_in_force(draft: PolicyDraft, last: DraftRevision, policy: Policy, principal: Principal) -> PolicyVersion:
    parsed = PolicyDocument.model_validate(last.document)
    policies.check_and_take_tools(policy=policy, parsed=parsed, tools=last.tools)
    authors = draft.revisions.order_by("number").values_list("author__key", flat=True)
    version = policies.next_version(
        policy=policy,
        name=policy.name,
        stored=last.document,
        note=last.note,
        publisher=principal,
        draft=draft,
        written_by=sorted(set(authors)),
        asked_by=draft.asked_by.key if draft.asked_by else "",
        revision=last.number,
    )
    draft.publish()
    draft.closed_by, draft.closed_at = principal, clock.now()
    draft.save(update_fields=["state", "closed_by", "closed_at"])
    return version
