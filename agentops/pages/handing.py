"""Handing a stage on, and adding a person who has to approve as well, from the decision page."""

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from agentops import asked
from agentops.pages import walk
from approvals import rights, seating, voters
from approvals.involvement import involved
from approvals.models import ApprovalRequest, Stage, Vote
from approvals.services import handing
from runs.access import needs, refused, someone_else, user_of
from runs.forms import Form
from runs.rights import NO_RIGHT

SOMEONE_ELSE = "You are signed in as someone else than when this page was opened. Nothing was changed."
WORDS = {
    NO_RIGHT: "Your rights have changed: handing on takes an active account with the right to it. Nothing was changed.",
    "own_request": "You have a part in this, so somebody else says who looks at it.",
    "closed": "It takes no answers any more, so nothing was changed.",
    "reason_needed": "Say why: whoever is asked next wants to know.",
    "reason_too_long": "The reason is too long: at most 2,000 characters.",
    "no_such_stage": "There is no such stage.",
    "not_asked": "That stage is not asked now. Nothing was changed.",
    "named_person": "That stage asks one person by name and cannot be handed on.",
    "does_not_fit": "{to} could not answer for {stage}, so it would wait for nobody. Choose somebody it asks.",
    "has_part": "{to} has a part in this run, so they never approve in it. Choose another.",
    "has_answered": "{to} has answered already, or somebody has for them. Choose another.",
    "cannot_vote": "{to} has no right to approve. Choose another.",
    "there_already": "{to} has been added already.",
    "needed_elsewhere": "{to} is needed for {stage}: each answers once, and too few others could. Choose another.",
    "too_many": "Ten people were added already. That is the most.",
}


class HandForm(Form):
    stage = forms.UUIDField()
    to = forms.CharField(max_length=160)
    reason = forms.CharField(required=False)


class AddForm(Form):
    person = forms.ModelChoiceField(queryset=User.objects.all())
    reason = forms.CharField(required=False)


def choices(*, request: ApprovalRequest, stages: Sequence[Stage], votes: Sequence[Vote]) -> dict[str, Any]:
    """Whom the two forms offer: those who could answer an open stage, its groups, and everybody who may vote."""
    open_stages = [stage for stage in stages if stage.is_asked and stage.person_id is None]
    people = voters.known(groups={name for stage in open_stages for name in stage.every_group})
    heard = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for)}
    out = involved(run=request.run, user_ids=people) | heard
    able = [
        person.user
        for person in people.values()
        if person.user.pk not in out
        and any(seating.fits(stage=stage, person=person, proposal=request.proposal) for stage in open_stages)
    ]
    every = rights.voters().exclude(pk__in={one for one in out if one is not None})
    return {
        "hand_stages": open_stages,
        "hand_people": able,
        "hand_groups": Group.objects.filter(user__in=able).distinct().order_by("name"),
        "add_people": every.order_by("first_name", "last_name", "username"),
    }


def _target(text: str) -> User | Group:
    """`user:7` or `group:3`. Raises Http404."""
    kind, _, number = text.partition(":")
    if kind not in ("user", "group") or not number.isdecimal() or len(number) > 9:
        raise Http404
    model: Any = User if kind == "user" else Group
    found: User | Group | None = model.objects.filter(pk=int(number)).first()
    if found is None:
        raise Http404
    return found


def _back(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """To the page, which stays a page of its list."""
    return redirect(reverse("decision", args=[request_id]) + walk.address(walk.listing(request)))


def _said(template: str, result: handing.HandingResult) -> str:
    """Filled, with groups in the product's words; as the sentence that it is."""
    said = template.format_map({name: asked.group_words(str(value)) for name, value in result.detail.items()})
    return said[:1].upper() + said[1:]


def _answer(request: HttpRequest, request_id: uuid.UUID, result: handing.HandingResult, done: str) -> HttpResponse:
    if result.code == NO_RIGHT:
        return refused(request, reason=WORDS[NO_RIGHT])
    if result.ok:
        messages.success(request, _said(done, result))
    else:
        messages.error(request, _said(WORDS[result.code], result))
    return _back(request, request_id)


@require_POST
@needs("approvals.view_approvalrequest")
def hand_on(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    form = HandForm(request.POST)
    if someone_else(request) or not form.is_valid():
        messages.error(request, SOMEONE_ELSE if someone_else(request) else "Choose a stage and whom to hand it to.")
        return _back(request, request_id)
    try:
        result = handing.hand_on(
            request_id=request_id,
            stage_id=form.cleaned_data["stage"],
            to=_target(form.cleaned_data["to"]),
            reason=form.cleaned_data["reason"],
            by=user_of(request),
        )
    except ApprovalRequest.DoesNotExist:
        raise Http404 from None
    return _answer(request, request_id, result, "{stage}: handed on to {to}.")


@require_POST
@needs("approvals.view_approvalrequest")
def add(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    form = AddForm(request.POST)
    if someone_else(request) or not form.is_valid():
        messages.error(request, SOMEONE_ELSE if someone_else(request) else "Choose a person to add.")
        return _back(request, request_id)
    try:
        result = handing.add_approver(
            request_id=request_id,
            person=form.cleaned_data["person"],
            reason=form.cleaned_data["reason"],
            by=user_of(request),
        )
    except ApprovalRequest.DoesNotExist:
        raise Http404 from None
    return _answer(request, request_id, result, "{to} has to approve as well now.")
