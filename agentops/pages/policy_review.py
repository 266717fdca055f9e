"""What a draft would change, tried against what there has been; and the acts: ask, send back, publish, discard."""

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agentops import policy_figures, policy_trial
from agentops.pages import policy_parts as parts
from approvals import draft_words, policy_checks, rule_diff, voters
from approvals.advice import Advice, advise
from approvals.models import DraftRevision, PolicyDraft
from approvals.rules import PolicyDocument
from approvals.services import drafts, publishing
from approvals.services.drafts import DraftResult
from runs import clock
from runs.access import needs, someone_else, user_of
from runs.models import Principal
from runs.services import principals

REVIEWED = 100  # proposals that the review itself looks at
REVIEW_SECONDS = 3.0
TRY_SECONDS = 8.0
LASTS = (50, 100, 200, policy_trial.MOST)
SHOWN = 100  # changed proposals listed on a page


@require_GET
@needs("approvals.view_policy")
def review(request: HttpRequest, slug: str) -> HttpResponse:
    draft = parts.open_draft(slug=slug)
    if draft is None:
        return parts.say(request, code="nothing_open", to="policy", slug=slug)
    return _page(request, draft)


@require_GET
@needs("approvals.view_policy")
def draft_try(request: HttpRequest, slug: str) -> HttpResponse:
    """The same trial on more proposals, with every one whose outcome would change."""
    draft = parts.open_draft(slug=slug)
    if draft is None:
        return parts.say(request, code="nothing_open", to="policy", slug=slug)
    asked = request.GET.get("last", "")
    last = int(asked) if asked in map(str, LASTS) else REVIEWED
    context = {
        "section": "policies",
        "now": clock.now(),
        "policy": draft.policy,
        "draft": draft,
        "lasts": LASTS,
        "last": last,
        **trial_context(draft, drafts.newest(draft=draft), last=last, seconds=TRY_SECONDS),
    }
    return render(request, "approvals/try.html", context)


def trial_context(draft: PolicyDraft, revision: DraftRevision, *, last: int, seconds: float) -> dict[str, Any]:
    trial = policy_trial.try_document(
        policy=draft.policy, document=revision.document, tools=revision.tools, last=last, seconds=seconds
    )
    changed = [one for one in trial.tried if one.changes]
    return {
        "trial": trial,
        "lines": policy_figures.lines(trial=trial),
        "groups": policy_figures.groups(trial=trial),
        "changed": changed[:SHOWN],
        "changed_count": len(changed),
    }


def _page(
    request: HttpRequest, draft: PolicyDraft, *, notice: str = "", typed: str = "", status: int = 200
) -> HttpResponse:
    user, revision, active = user_of(request), drafts.newest(draft=draft), draft.policy.active
    principal = Principal.objects.filter(user=user).first()
    problems = drafts.publishable(draft=draft)
    context: dict[str, Any] = {
        "section": "policies",
        "now": clock.now(),
        "policy": draft.policy,
        "draft": draft,
        "revision": revision,
        "authors": parts.authors(draft),
        "moved": draft.based_on_id != draft.policy.active_id,
        "changes": rule_diff.changes(
            old=draft.based_on.rules,
            new=revision.document,
            old_tools=draft.policy.tools.values_list("tool", flat=True),
            new_tools=revision.tools,
        ),
        "problems": problems,
        "advice": _advice(revision),
        "asks": _asks(revision),
        "seen": publishing.seen_digest(draft=draft, revision=revision, in_force=active),
        "may_edit": user.has_perm(drafts.EDIT),
        "may_publish": user.has_perm(drafts.PUBLISH),
        "wrote": publishing.wrote(draft=draft, principal=principal),
        "notice": notice,
        "typed": typed,
        **trial_context(draft, revision, last=REVIEWED, seconds=REVIEW_SECONDS),
    }
    return render(request, "approvals/review.html", context, status=status)


def _advice(revision: DraftRevision) -> Advice:
    """Nothing where the document cannot be read under today's rules: its problems are listed instead."""
    try:
        return advise(document=revision.document)
    except ValueError:
        return Advice()


def _asks(revision: DraftRevision) -> list[dict[str, Any]]:
    """Each rule that asks, stage by stage, with how many people there are to ask now. An absent group means nobody."""
    try:
        document = PolicyDocument.model_validate(revision.document)
    except ValueError:
        return []
    found = []
    for rule in document.rules:
        if rule.ask is not None:
            for stage in rule.ask.chain():
                people = voters.known(groups=stage.groups).values()
                able = sum(policy_checks.meets(person=one, need=stage) for one in people)
                groups = " or ".join(stage.groups)
                found.append(
                    {"rule": rule, "stage": stage, "in_stages": bool(rule.ask.stages), "groups": groups,
                     "voters": able, "enough": able >= stage.quorum}
                )  # fmt: skip
    return found


Act = Callable[[uuid.UUID, Principal, int], DraftResult]


def _act(request: HttpRequest, slug: str, act: Act, *, done: str, to: str, word: str = "write") -> HttpResponse:
    """Do it on the draft that the page was about, and say what came of it; what was typed stays on the page."""
    draft = parts.open_draft(slug=slug)
    if someone_else(request):
        return parts.say(request, code="someone_else", to="policy_review" if draft else "policy", slug=slug)
    principal = principals.of_user(user=user_of(request))
    about = parts.posted_draft(request, slug=slug)
    number = request.POST.get("revision", "")
    revision = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
    result = act(about, principal, revision)
    if result.ok:
        messages.success(request, done)
        return redirect(to, slug)
    if draft is None or result.code == "no_right":
        return parts.say(request, code=result.code, detail=result.detail, to="policy", slug=slug, act=word)
    fresh = parts.open_draft(slug=slug) or draft
    sentence = draft_words.sentence(code=result.code, detail=result.detail, act=word)
    typed = request.POST.get("reason", "")[: drafts.REASON_LENGTH * 2]
    needed = ("invalid", "note_needed", "reason_needed", "reason_too_long")
    return _page(request, fresh, notice=sentence, typed=typed, status=422 if result.code in needed else 409)


@require_POST
@needs(drafts.EDIT)
def draft_ask(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(
        request,
        slug,
        lambda draft, who, number: drafts.ask(draft_id=draft, principal=who, revision=number),
        done="A second person is asked to publish it. It is not in force yet.",
        to="policy_review",
    )


@require_POST
@needs(drafts.EDIT)
def draft_discard(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(
        request,
        slug,
        lambda draft, who, number: drafts.discard(draft_id=draft, principal=who, revision=number),
        done="The draft is discarded. The version in force stays as it is.",
        to="policy",
    )


@require_POST
@needs("approvals.view_policy")
def draft_send_back(request: HttpRequest, slug: str) -> HttpResponse:
    reason = request.POST.get("reason", "")
    return _act(
        request,
        slug,
        lambda draft, who, number: drafts.send_back(draft_id=draft, principal=who, revision=number, reason=reason),
        done="Sent back to its writers with your reason.",
        to="policy_review",
        word="publish",
    )


@require_POST
@needs("approvals.view_policy")
def draft_publish(request: HttpRequest, slug: str) -> HttpResponse:
    """A lost right is refused by the service itself, so that it is recorded; hence no more than looking up front."""
    seen = request.POST.get("seen", "")
    return _act(
        request,
        slug,
        lambda draft, who, number: publishing.publish(draft_id=draft, principal=who, seen=seen),
        done="Published. It is in force from now on; what waits for an answer is checked against it.",
        to="policy",
        word="publish",
    )
