"""The page on which a policy's next version is written: a form of its rules, or the whole document as text."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agentops.pages import policy_parts as parts
from agentops.pages import policy_places
from approvals import ask_fields, draft_words, rules
from approvals.advice import Advice, advise
from approvals.condition_words import in_words
from approvals.forms import Typed, from_document, typed_from_post, written
from approvals.models import DraftRevision, Policy, PolicyDraft
from approvals.rules import Problem
from approvals.services import drafts
from runs import clock
from runs.access import needs, someone_else, user_of
from runs.services import principals
from runs.tools.registry import TOOLS


@require_POST
@needs(drafts.EDIT)
def draft_start(request: HttpRequest, slug: str) -> HttpResponse:
    """Begin a change of the version in force, or the way back to an older one."""
    policy = get_object_or_404(Policy, slug=slug)
    if someone_else(request):
        return parts.say(request, code="someone_else", to="policy", slug=slug)
    number = request.POST.get("back_to", "")
    back_to = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else None
    principal = principals.of_user(user=user_of(request))
    result = drafts.start(slug=policy.slug, principal=principal, back_to=back_to)
    if not result.ok:
        to = "policy_draft" if result.code == "draft_exists" else "policy"
        return parts.say(request, code=result.code, detail=result.detail, to=to, slug=slug)
    return redirect("policy_draft", slug)


@require_http_methods(["GET", "HEAD", "POST"])
@needs("approvals.view_policy")
def draft_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the draft to write in; a post saves it, or adds, moves and removes rules without saving."""
    draft = parts.open_draft(slug=slug)
    if draft is None:
        return parts.say(request, code="nothing_open", to="policy", slug=slug)
    if not request.user.has_perm(drafts.EDIT):
        return redirect("policy_review", slug)
    last = drafts.newest(draft=draft)
    if request.method != "POST":
        return _page(request, draft, last, _shown(last, wanted=request.GET.get("mode", "form")))
    typed = _typed(request)
    op = request.POST.get("op", "save")
    if op == "as_text":
        return _page(request, draft, last, typed.as_text())
    if op == "as_form":
        return _page(request, draft, last, typed.as_form())
    if op != "save":
        after = typed.changed(op=op)
        return _page(request, draft, last, after, go_on=policy_places.after(op=op, typed=after))
    return _save(request, draft, last, typed)


def _save(request: HttpRequest, draft: PolicyDraft, last: DraftRevision, typed: Typed) -> HttpResponse:
    if someone_else(request):
        return _page(request, draft, last, typed, notice=draft_words.sentence(code="someone_else"), status=409)
    document, problems = typed.document()
    if problems:
        return _page(request, draft, last, typed, notice=draft_words.sentence(code="invalid"), status=422)
    result = drafts.save(
        draft_id=draft.pk,
        principal=principals.of_user(user=user_of(request)),
        revision=typed.revision,
        written=drafts.Written(document=document, tools=typed.tools, note=typed.note),
    )
    if result.ok:
        same = result.code == "same"
        messages.success(request, "There was nothing new to save." if same else "Saved. It is not in force yet.")
        return redirect("policy_review" if request.POST.get("then") == "review" else "policy_draft", draft.policy.slug)
    notice = draft_words.sentence(code=result.code, detail=result.detail)
    status = {"invalid": 422, "no_right": 403}.get(result.code, 409)
    fresh = parts.open_draft(slug=draft.policy.slug) or draft
    if result.code == "changed":  # the next save is made knowing theirs
        typed = replace(typed, revision=fresh.revision)
    return _page(request, fresh, drafts.newest(draft=fresh), typed, notice=notice, status=status)


@require_POST
@needs(drafts.EDIT)
def draft_check(request: HttpRequest, slug: str) -> HttpResponse:
    """What is wrong with what is in the editor now; nothing is saved."""
    draft = parts.open_draft(slug=slug)
    if draft is None:
        return HttpResponse(status=204)
    return render(request, "approvals/_findings.html", findings(draft.policy, _typed(request)))


@require_GET
@needs("approvals.view_policy")
def draft_revision(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One saved revision of the open draft, as text."""
    draft = parts.open_draft(slug=slug)
    found = get_object_or_404(DraftRevision.objects.select_related("author"), draft=draft, number=number)
    context = {"section": "policies", "policy": found.draft.policy, "revision": found, "now": clock.now()}
    return render(request, "approvals/revision.html", context | {"text": written(document=found.document)})


def _typed(request: HttpRequest) -> Typed:
    tools = sorted({tool for tool in request.POST.getlist("tools") if 0 < len(tool) <= 80})
    return typed_from_post(data=request.POST, tools=tools)


def _shown(last: DraftRevision, *, wanted: str) -> Typed:
    plain = Typed(
        mode="text",
        revision=last.number,
        note=last.note,
        tools=list(last.tools),
        text=written(document=last.document),
    )
    return plain if wanted == "text" else from_document(document=last.document, like=plain) or plain


def findings(policy: Policy, typed: Typed) -> dict[str, Any]:
    """What is wrong, and what should be known, each with a link to its field where there is one."""
    document, problems = typed.document()
    advice = Advice()
    groups: list[Problem] = []
    if not problems:
        content = drafts.Written(document=document, tools=typed.tools, note=typed.note)
        problems = drafts.problems_of(policy=policy, written=content)
    if not problems:
        advice = advise(document=document)
        groups = parts.group_problems(document)
    where = policy_places.of(typed=typed)
    return {
        "reads": [(one["id"], in_words(source=one["when"])) for one in document["rules"]] if not problems else [],
        "problems": [(one, where(one)) for one in problems],
        "warnings": [(one, where(one)) for one in [*groups, *advice.warnings]],
        "hints": [(one, where(one)) for one in advice.hints],
    }


def _page(
    request: HttpRequest,
    draft: PolicyDraft,
    last: DraftRevision,
    typed: Typed,
    *,
    notice: str = "",
    status: int = 200,
    go_on: policy_places.Next | None = None,
) -> HttpResponse:
    """The editor. What cannot be saved is said at its fields once somebody tried to, and beside them at any time."""
    policy = draft.policy
    had = set(policy.tools.values_list("tool", flat=True))
    others = set(parts.governed_elsewhere(policy))
    offered = sorted((set(TOOLS) | had | set(typed.tools)) - (others - set(typed.tools)))
    found = findings(policy, typed)
    told = policy_places.by_field(problems=found["problems"]) if status == 422 else {}
    go_on = go_on or policy_places.Next()
    shown = policy_places.Shown(typed=typed, told=told, go_on=go_on)
    context: dict[str, Any] = {
        "section": "policies",
        "now": clock.now(),
        "policy": policy,
        "draft": draft,
        "last": last,
        "authors": parts.authors(draft),
        "typed": typed,
        "rules": shown.rules(),
        "totals": shown.totals(),
        "standing": shown.standing(),
        "told": {name: told.get(at, []) for name, at in (("note", "id_note"), ("tools", "tools"))},
        "unreadable": bool(told) and typed.mode == "text",
        "focus": go_on.focus,
        "most": rules.MAX_RULES,
        "most_stages": ask_fields.MAX_STAGES,
        "most_steps": ask_fields.MAX_STEPS,
        "tools": [(tool, tool in typed.tools, tool in had) for tool in offered],
        "variables": sorted(rules.VARIABLES.items()),
        "notice": notice,
        **found,
    }
    return render(request, "approvals/draft.html", context, status=status)
