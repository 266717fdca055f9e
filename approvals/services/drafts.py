"""Writing the next version of a policy: begin, save, ask for publication, send back, discard.

Every act looks at the person's right under its locks (user, policy, draft, in this order), and every refusal is
recorded in `system:policies` with its own code; the sentences are in `approvals.draft_words`.
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from approvals import policy_checks
from approvals.models import DraftRevision, Policy, PolicyDraft, PolicyVersion
from approvals.models.draft import OPEN, DraftState
from approvals.rules import PolicyDocument, Problem, validate
from approvals.words import is_blank, storable
from runs import clock, record, rights
from runs.canonical import digest
from runs.models import Principal

EDIT = "approvals.edit_policy"
PUBLISH = "approvals.publish_policy"
REASON_LENGTH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftResult:
    """`code` is ok, same (there was nothing to save) or a refusal's; `problems` are set for `invalid` alone."""

    code: str
    draft: PolicyDraft | None = None
    version: PolicyVersion | None = None
    problems: list[Problem] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code in ("ok", "same")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a save holds: the document as it was written, the tools it governs, and why it changes."""

    document: Any
    tools: list[str]
    note: str


def refuse(
    code: str, *, act: str, policy: Policy, principal: Principal, problems: list[Problem] | None = None, **detail: Any
) -> DraftResult:
    """The refusal, recorded; inside the caller's transaction."""
    told = {"problems": [str(one)[:300] for one in problems[:20]]} if problems else {}
    record.append_system(
        topic="policies",
        kind="policy.refused",
        actor=principal,
        act=act,
        code=code,
        policy=policy.slug,
        **detail,
        **told,
    )
    return DraftResult(code=code, problems=problems or [], detail=detail)


def not_entitled(*, principal: Principal, permission: str) -> str:
    """The code of the reason why this principal may not act now, or nothing; held until the transaction ends."""
    if principal.kind != Principal.Kind.PERSON:
        return "not_a_person"  # a policy takes named people
    return "" if rights.entitled_held(principal=principal, permission=permission) else rights.NO_RIGHT


def newest(*, draft: PolicyDraft) -> DraftRevision:
    return draft.revisions.select_related("author").get(number=draft.revision)


def start(*, slug: str, principal: Principal, back_to: int | None = None) -> DraftResult:
    """Open a draft of the version in force, or of an older one to go back to. Refusals: no_right, not_a_person,
    draft_exists, no_such_version, in_force_already. Raises Policy.DoesNotExist."""
    with transaction.atomic(durable=True):
        code = not_entitled(principal=principal, permission=EDIT)
        policy = Policy.objects.select_for_update(of=("self",)).select_related("active").get(slug=slug)
        if code:
            return refuse(code, act="start", policy=policy, principal=principal)
        if existing := policy.drafts.filter(state__in=OPEN).first():
            by = newest(draft=existing).author.label
            return refuse("draft_exists", act="start", policy=policy, principal=principal, by=by)
        active = policy.active
        source = active if back_to is None else policy.versions.filter(number=back_to).first()
        if active is None or source is None:
            return refuse("no_such_version", act="start", policy=policy, principal=principal)
        if back_to is not None and source.pk == active.pk:
            return refuse("in_force_already", act="start", policy=policy, principal=principal, number=active.number)
        draft = PolicyDraft.objects.create(policy=policy, based_on=active, created_at=clock.now())
        note = "" if back_to is None else f"Back to version {source.number}."
        tools = list(policy.tools.order_by("tool").values_list("tool", flat=True))
        _revise(draft, source.rules, tools, note, principal, kind="policy.draft_started")
    return DraftResult(code="ok", draft=draft)


def save(*, draft_id: uuid.UUID, principal: Principal, revision: int, written: Written) -> DraftResult:
    """Keep what was written as the next revision; a draft that waited for a second person is being written again.

    `revision` is the one the writer had before them. Refusals: no_right, not_a_person, closed, changed, invalid.
    """
    with transaction.atomic(durable=True):
        draft, refusal = _open(draft_id, principal, EDIT, act="save", revision=revision)
        if refusal is not None:
            return refusal
        problems = problems_of(policy=draft.policy, written=written)
        if problems:
            return refuse("invalid", act="save", policy=draft.policy, principal=principal, problems=problems)
        before = newest(draft=draft)
        stored = PolicyDocument.model_validate(written.document).stored(policy=draft.policy.slug)
        note = storable(text=written.note)
        if (before.digest, before.tools, before.note) == (digest(stored), written.tools, note):
            return DraftResult(code="same", draft=draft)
        draft.revision += 1
        changed = ["revision"]
        if draft.state == DraftState.ASKED:
            draft.reopen()
            draft.asked_by = draft.asked_at = None
            changed += ["state", "asked_by", "asked_at"]
        draft.save(update_fields=changed)
        _revise(draft, stored, written.tools, note, principal, kind="policy.draft_saved")
    return DraftResult(code="ok", draft=draft)


def ask(*, draft_id: uuid.UUID, principal: Principal, revision: int) -> DraftResult:
    """Ask a second person to publish it. Refusals: no_right, not_a_person, closed, changed, asked_already, note_needed,
    nothing_changed, invalid."""
    with transaction.atomic(durable=True):
        draft, refusal = _open(draft_id, principal, EDIT, act="ask", revision=revision)
        if refusal is not None:
            return refusal
        code, problems = _not_ready(draft)
        if code:
            return refuse(code, act="ask", policy=draft.policy, principal=principal, problems=problems)
        draft.ask()
        draft.asked_by, draft.asked_at, draft.reason = principal, clock.now(), ""
        draft.save(update_fields=["state", "asked_by", "asked_at", "reason"])
        _tell("policy.publication_asked", draft, principal)
    return DraftResult(code="ok", draft=draft)


def send_back(*, draft_id: uuid.UUID, principal: Principal, revision: int, reason: str) -> DraftResult:
    """Let the writers go on with a reason. Refusals: no_right, not_a_person, closed, changed, not_asked,
    reason_needed, reason_too_long."""
    with transaction.atomic(durable=True):
        draft, refusal = _open(draft_id, principal, PUBLISH, act="send_back", revision=revision)
        if refusal is not None:
            return refusal
        code = "not_asked" if draft.state != DraftState.ASKED else _reason_code(reason)
        if code:
            return refuse(code, act="send_back", policy=draft.policy, principal=principal)
        draft.reopen()
        draft.asked_by = draft.asked_at = None
        draft.reason = storable(text=reason)
        draft.save(update_fields=["state", "asked_by", "asked_at", "reason"])
        _tell("policy.draft_sent_back", draft, principal, reason=draft.reason)
    return DraftResult(code="ok", draft=draft)


def discard(*, draft_id: uuid.UUID, principal: Principal, revision: int) -> DraftResult:
    """End the draft; its revisions stay in the record. Refusals: no_right, not_a_person, closed, changed."""
    with transaction.atomic(durable=True):
        draft, refusal = _open(draft_id, principal, EDIT, act="discard", revision=revision)
        if refusal is not None:
            return refusal
        draft.discard()
        draft.closed_by, draft.closed_at = principal, clock.now()
        draft.save(update_fields=["state", "closed_by", "closed_at"])
        _tell("policy.draft_discarded", draft, principal)
    return DraftResult(code="ok", draft=draft)


def problems_of(*, policy: Policy, written: Written) -> list[Problem]:
    """What is wrong with it as a document, whoever is in which group; an empty list when it can be saved."""
    problems = validate(document=written.document) + policy_checks.note_problems(note=written.note)
    problems += policy_checks.tool_problems(policy=policy, tools=written.tools)
    problems += policy_checks.unknown_tools(policy=policy, tools=written.tools)
    if problems:
        return problems
    parsed = PolicyDocument.model_validate(written.document)
    if parsed.policy not in ("", policy.slug):
        return [Problem(where="policy", field="policy", remedy=f"is {parsed.policy[:80]}; write {policy.slug}")]
    return policy_checks.condition_tools(document=parsed, tools=written.tools)


def lock_draft(*, draft_id: uuid.UUID) -> PolicyDraft:
    return PolicyDraft.objects.select_for_update(of=("self",)).select_related("policy", "based_on").get(pk=draft_id)


def publishable(*, draft: PolicyDraft) -> list[Problem]:
    """Everything that stands in the way of publishing its newest revision now, groups included."""
    last = newest(draft=draft)
    written = Written(document=last.document, tools=last.tools, note=last.note)
    problems = problems_of(policy=draft.policy, written=written)
    if problems:
        return problems
    return policy_checks.group_problems(document=PolicyDocument.model_validate(last.document))


def _not_ready(draft: PolicyDraft) -> tuple[str, list[Problem]]:
    last = newest(draft=draft)
    had = set(draft.policy.tools.values_list("tool", flat=True))
    if draft.state == DraftState.ASKED:
        return "asked_already", []
    if last.digest == draft.based_on.digest and set(last.tools) == had:
        return "nothing_changed", []
    if is_blank(text=last.note):
        return "note_needed", []
    problems = publishable(draft=draft)
    return ("invalid", problems) if problems else ("", [])


def _reason_code(reason: str) -> str:
    if is_blank(text=reason):
        return "reason_needed"
    return "reason_too_long" if len(reason) > REASON_LENGTH else ""


def _open(
    draft_id: uuid.UUID, principal: Principal, permission: str, *, act: str, revision: int
) -> tuple[PolicyDraft, DraftResult | None]:
    """The draft, locked, and the refusal of anybody who may not act on it as they saw it. Raises DoesNotExist."""
    code = not_entitled(principal=principal, permission=permission)
    draft = lock_draft(draft_id=draft_id)
    detail: dict[str, Any] = {}
    if not code and draft.state not in OPEN:
        code, detail = "closed", closing(draft=draft)
    if not code and draft.revision != revision:
        code, detail = "changed", {"by": newest(draft=draft).author.label, "revision": draft.revision}
    if not code:
        return draft, None
    return draft, refuse(code, act=act, policy=draft.policy, principal=principal, **detail)


def closing(*, draft: PolicyDraft) -> dict[str, Any]:
    """Who closed it and how, for the sentence of `closed`."""
    by = draft.closed_by.label if draft.closed_by else ""
    return {"by": by, "state": str(draft.state), "at": draft.closed_at.isoformat() if draft.closed_at else ""}


def _revise(
    draft: PolicyDraft, stored: dict[str, Any], tools: list[str], note: str, author: Principal, *, kind: str
) -> None:
    DraftRevision.objects.create(
        draft=draft,
        number=draft.revision,
        document=stored,
        digest=digest(stored),
        tools=tools,
        note=note,
        author=author,
        at=clock.now(),
    )
    _tell(kind, draft, author, digest=digest(stored), tools=tools)


def _tell(kind: str, draft: PolicyDraft, actor: Principal, **more: Any) -> None:
    record.append_system(
        topic="policies",
        kind=kind,
        actor=actor,
        policy=draft.policy.slug,
        draft=str(draft.pk),
        revision=draft.revision,
        **more,
    )
