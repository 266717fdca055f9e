"""Standing approvals: all of them with what is used and left; writing one, putting it in force, and taking it back."""

import datetime as dt
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agentops import standing_figures as figures
from agentops.pages.run import ReasonForm
from approvals import rights, standing_words
from approvals.condition_words import NAMES
from approvals.models import StandingApproval
from approvals.models.policy import PolicyTool
from approvals.models.standing import Period, StandingState
from approvals.policy_text import standing as terms_in_words
from approvals.services import standing as acts
from approvals.standing import CONDITIONS
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.forms import Form, sensible_day
from runs.money import MoneyError, parse_amount
from runs.rights import NO_RIGHT
from runs.services import principals

VIEW = "approvals.view_policy"
DONE = {
    "grant": "In force from now on.",
    "decline": "Declined. Nothing is approved beforehand by it.",
    "withdraw": "Withdrawn. It was never in force.",
    "revoke": "Revoked. Nothing more is sent under it.",
}
ENDS = {"decline": acts.decline, "withdraw": acts.withdraw, "revoke": acts.revoke}
DAY = dt.timedelta(days=1)


class StandingForm(Form):
    """What is approved beforehand, as it is typed."""

    tool = forms.ChoiceField(label="Tool")
    account = forms.CharField(label="Account", max_length=300, required=False, help_text="Such as ACC-1093")
    ticket = forms.CharField(label="Ticket", max_length=300, required=False)
    incident = forms.CharField(label="Incident", max_length=300, required=False)
    reason_is = forms.CharField(label="Only for the reason", max_length=300, required=False)
    currency = forms.CharField(label="Currency", max_length=3, help_text="Such as USD")
    each = forms.CharField(label="Up to, each", max_length=24, help_text="Such as 1500.00")
    total = forms.CharField(label="Up to, together", max_length=24)
    count = forms.IntegerField(label="Actions", min_value=1, max_value=acts.MOST_ACTIONS)
    period = forms.ChoiceField(label="Both limits hold", choices=Period.choices)
    starts = forms.DateField(label="From", widget=forms.DateInput(attrs={"type": "date"}), required=False)
    ends = forms.DateField(
        label="Until the end of",
        widget=forms.DateInput(attrs={"type": "date"}),
        error_messages={"required": "Choose until when."},
    )
    reason = forms.CharField(
        label="Why",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Say why: whoever puts it in force reads this."},
    )

    def __init__(self, *args: Any, tools: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tool"].choices = [(tool, tool) for tool in tools]  # type: ignore[attr-defined]
        self.fields["starts"].help_text = "Days are those of UTC; empty means from now on"
        self.fields["count"].widget.attrs["inputmode"] = "numeric"

    def clean_starts(self) -> dt.date | None:
        day = self.cleaned_data["starts"]
        return None if day is None else sensible_day(day=day)

    def clean_ends(self) -> dt.date:
        return sensible_day(day=self.cleaned_data["ends"])

    def clean(self) -> dict[str, Any]:
        found = self.cleaned_data
        for name in ("each", "total"):
            if name in found and "currency" in found:
                try:
                    found[name] = parse_amount(text=found[name].strip(), currency=found["currency"].strip())
                except MoneyError as problem:
                    where = "currency" if "currency" in str(problem) else name
                    self.add_error(where if where in found else None, f"This {problem}.")
        return found

    def terms(self) -> acts.Terms:
        found = self.cleaned_data
        only = {name: found[name].strip() for name in ("account", "ticket", "incident")}
        only["reason"] = found["reason_is"].strip()
        starts = found["starts"]
        return acts.Terms(
            tool=found["tool"],
            only={name: value for name, value in only.items() if value},
            each=found["each"],
            total=found["total"],
            count=found["count"],
            period=Period(found["period"]),
            starts_at=clock.now() if starts is None else _midnight(starts),
            ends_at=_midnight(found["ends"]) + DAY,
            reason=found["reason"],
        )


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), dt.UTC)


def _open_to(request: HttpRequest) -> dict[str, dict[str, str]]:
    """Tools whose policy lets this person approve beforehand, with how far, in words."""
    user, found = user_of(request), {}
    for tool in PolicyTool.objects.order_by("tool").values_list("tool", flat=True):
        section = acts.section(tool=tool)
        if section is not None and rights.still_entitled(user_ids=[user.pk], group=section[1].group):
            found[tool] = terms_in_words(terms=section[1].model_dump())
    return found


@require_GET
@needs(VIEW)
def standing_list(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    context = {"section": "policies", "now": now, "may": bool(_open_to(request))}
    return render(request, "approvals/standing_list.html", context | figures.listed(now=now))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW)
def standing_new(request: HttpRequest) -> HttpResponse:
    """Write one; it is not in force before it is granted, on its own page."""
    tools = _open_to(request)
    if not tools:
        why = "No policy lets you approve anything beforehand: it names the group whose members may, and for what."
        return refused(request, reason=why)
    if request.method != "POST":
        form = StandingForm(tools=list(tools), initial={"currency": "USD", "count": 1, "period": Period.WHOLE})
        return _new(request, form, tools)
    if someone_else(request):
        return refused(request, reason=standing_words.sentence(code="someone_else"))
    form = StandingForm(request.POST, tools=list(tools))
    if not form.is_valid():
        return _new(request, form, tools, status=422)
    result = acts.ask(terms=form.terms(), principal=principals.of_user(user=user_of(request)))
    if result.standing is not None:
        return redirect("standing_one", result.standing.pk)
    if result.code == NO_RIGHT:
        return refused(request, reason=standing_words.sentence(code=result.code, detail=result.detail))
    for name, remedy in result.faults.items():
        form.add_error({"reason": "reason_is"}.get(name, name) if name in CONDITIONS else name, remedy)
    if not result.faults:
        form.add_error(None, standing_words.sentence(code=result.code, detail=result.detail))
    return _new(request, form, tools, status=422)


def _new(
    request: HttpRequest, form: StandingForm, tools: dict[str, dict[str, str]], *, status: int = 200
) -> HttpResponse:
    context = {"section": "policies", "now": clock.now(), "form": form, "tools": tools}
    return render(request, "approvals/standing_new.html", context, status=status)


@require_GET
@needs(VIEW)
def standing_one(request: HttpRequest, standing_id: uuid.UUID) -> HttpResponse:
    return _page(request, standing_id, form=ReasonForm(), dialog=request.GET.get("act", ""))


def _page(
    request: HttpRequest, standing_id: uuid.UUID, *, form: ReasonForm, dialog: str, status: int = 200
) -> HttpResponse:
    people = StandingApproval.objects.select_related("asked_by", "granted_by", "ended_by", "policy_version__policy")
    one = get_object_or_404(people, pk=standing_id)
    now, user = clock.now(), user_of(request)
    (row,) = figures.left(found=[one], now=now)
    context = {
        "section": "policies",
        "now": now,
        "one": one,
        "row": row,
        "only": [(NAMES.get(name, name), value) for name, value in sorted(one.only.items())],
        "uses": figures.uses(one=one),
        "consequences": standing_words.consequences(standing=one),
        "revoked": standing_words.REVOKED,
        "seen": acts.seen_digest(standing=one),
        "form": form,
        "dialog": dialog,
        **_may(one, mine=one.asked_by.user_id == user.pk, request=request),
    }
    return render(request, "approvals/standing_one.html", context, status=status)


def _may(one: StandingApproval, *, mine: bool, request: HttpRequest) -> dict[str, Any]:
    """What this person could do to it, as far as can be told beforehand."""
    member = bool(rights.still_entitled(user_ids=[user_of(request).pk], group=one.group))
    waits, runs = one.state == StandingState.ASKED, one.state == StandingState.IN_FORCE
    return {
        "mine": mine,
        "may_grant": waits and member and (not mine or one.one_is_enough),
        "may_end": [
            act
            for act, may in (
                ("decline", waits and member and not mine),
                ("withdraw", waits and mine),
                ("revoke", runs and (member or request.user.has_perm(acts.STOPS))),
            )
            if may
        ],
    }


@require_POST
@needs(VIEW)
def standing_act(request: HttpRequest, standing_id: uuid.UUID, act: str) -> HttpResponse:
    """Grant, or end it with a reason. Who may is looked at by the act itself, so that a refusal is recorded."""
    if act not in DONE or not StandingApproval.objects.filter(pk=standing_id).exists():
        raise Http404
    if someone_else(request):
        return refused(request, reason=standing_words.sentence(code="someone_else"))
    principal = principals.of_user(user=user_of(request))
    if act == "grant":
        result = acts.grant(standing_id=standing_id, principal=principal, seen=request.POST.get("seen", ""))
    else:
        form = ReasonForm(request.POST)
        if not form.is_valid():
            return _page(request, standing_id, form=form, dialog=act, status=422)
        reason = form.cleaned_data["reason"]
        result = ENDS[act](standing_id=standing_id, principal=principal, reason=reason)
    if result.ok:
        messages.success(request, DONE[act])
    elif result.code == NO_RIGHT:
        return refused(request, reason=standing_words.sentence(code=result.code, detail=result.detail))
    else:
        messages.error(request, standing_words.sentence(code=result.code, detail=result.detail))
    return redirect("standing_one", standing_id)
