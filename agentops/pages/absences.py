"""Who stands in for whom: one's own page, which shows everybody's to whoever may arrange them, with their limits."""

import datetime as dt
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from approvals import rights, working_calendar
from approvals.models import Absence, Remit
from approvals.services import absences
from runs import clock
from runs.access import needs, refused, someone_else, user_of
from runs.forms import Form
from runs.money import Money, MoneyError, parse_amount
from runs.rights import NO_RIGHT

PAST = 20
SOMEONE_ELSE = "You are signed in as someone else than when this page was opened. Nothing was changed."
WORDS = {
    NO_RIGHT: "Your rights have changed: only an admin arranges this for others. Nothing was changed.",
    "no_such_person": "There is no such person any more. Nothing was changed.",
    "nobody_else": "Choose somebody else: nobody stands in for themselves.",
    "cannot_vote": "One of the two has no right to approve, so there is nothing to stand in for. Choose others.",
    "away_too": "Whoever you chose is away then, with a stand-in of their own, and it goes no further. Choose another.",
    "overlaps": "There is a stand-in for part of that time already. End that first, or choose another time.",
    "backwards": "This is not after the time in From. Choose a later time.",
    "over": "This time is past already. Choose a later one.",
    "own_stand_in": "Nobody makes themselves somebody's stand-in: they name you, or another admin does.",
    "too_far": "This is more than a year from now. Choose an earlier time.",
    "too_long": "This is more than a year after the time in From. Choose an earlier time.",
    "note_too_long": "The note is too long: at most 300 characters.",
    "no_such_absence": "There is no such entry any more.",
    "ended_before": "That had ended already. Nothing was changed.",
    "own_remit": "Nobody sets their own limit. Another admin does.",
}
FIELDS = {"backwards": "ends", "over": "ends", "too_long": "ends", "too_far": "begins"}  # which a refusal is about


class PersonChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: User) -> str:
        return obj.get_full_name() or obj.get_username()


class AbsenceForm(Form):
    person = PersonChoice(
        label="Who is away",
        queryset=User.objects.none(),
        empty_label="Choose a person",
        error_messages={"required": "Choose who is away."},
    )
    stand_in = PersonChoice(
        label="Who stands in",
        queryset=User.objects.none(),
        empty_label="Choose a person",
        error_messages={"required": "Choose who stands in."},
    )
    begins = forms.DateTimeField(
        label="From",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        error_messages={"required": "Say from when."},
    )
    ends = forms.DateTimeField(
        label="Until",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        error_messages={"required": "Say until when."},
    )
    note = forms.CharField(label="Note", required=False, max_length=300, help_text="Everybody can read it.")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = rights.voters().order_by("first_name", "last_name", "username")
        others = user.has_perm(absences.ARRANGE)
        self.fields["person"].queryset = people if others else people.filter(pk=user.pk)  # type: ignore[attr-defined]
        stand_ins = people if others else people.exclude(pk=user.pk)
        self.fields["stand_in"].queryset = stand_ins  # type: ignore[attr-defined]


class RemitForm(Form):
    user = forms.IntegerField(widget=forms.HiddenInput)
    team = forms.CharField(label="Team", required=False, max_length=60)
    region = forms.CharField(label="Region", required=False, max_length=60)
    limits = forms.CharField(
        label="Up to", required=False, max_length=300, help_text="Such as USD=5000.00, EUR=4000.00; empty: none."
    )

    def clean_limits(self) -> dict[str, Money]:
        found: dict[str, Money] = {}
        for part in str(self.cleaned_data["limits"]).split(","):
            if not part.strip():
                continue
            currency, _, text = part.strip().partition("=")
            try:
                money = parse_amount(text=text.strip(), currency=currency.strip().upper())
            except MoneyError as problem:
                raise forms.ValidationError(f"“{part.strip()[:40]}” {problem}: write such as USD=5000.00") from None
            found[money.currency] = money
        return found


@require_http_methods(["GET", "HEAD", "POST"])
@needs("")
def page(request: HttpRequest) -> HttpResponseBase:
    user = user_of(request)
    if request.method == "POST" and someone_else(request):
        messages.error(request, SOMEONE_ELSE)
        return redirect("absences")
    form = AbsenceForm(request.POST or None, user=user, initial=_initial(user))
    if request.method != "POST" or not form.is_valid():
        return _page(request, form, status=422 if form.is_bound else 200)
    chosen = form.cleaned_data
    result = absences.arrange(
        person_id=chosen["person"].pk,
        stand_in_id=chosen["stand_in"].pk,
        begins=chosen["begins"],
        ends=chosen["ends"],
        note=chosen["note"],
        by=user,
    )
    if result.ok:
        messages.success(request, "Arranged. It counts from its first minute until its last, and no longer.")
        return redirect("absences")
    if result.code == NO_RIGHT:
        return refused(request, reason=WORDS[NO_RIGHT])
    if result.code in FIELDS:
        form.add_error(FIELDS[result.code], WORDS[result.code])
        return _page(request, form, status=422)
    return _page(request, form, problem=WORDS[result.code], status=409)


def _initial(user: User) -> dict[str, Any]:
    now = timezone.localtime().replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1)
    return {"person": user.pk, "begins": now, "ends": now + dt.timedelta(days=7)}


def _page(
    request: HttpRequest, form: AbsenceForm, *, problem: str = "", status: int = 200, remit: RemitForm | None = None
) -> HttpResponse:
    user, now = user_of(request), clock.now()
    arranges = user.has_perm(absences.ARRANGE)
    found = Absence.objects.select_related("person", "stand_in", "made_by", "ended_by")
    current = found.filter(ended_at=None, ends__gt=now).order_by("begins")
    context = {
        "section": "account",
        "now": now,
        "form": form,
        "problem": problem,
        "arranges": arranges,
        "may_vote": rights.may_vote_at_all(user=user),
        "own": current.filter(person=user),
        "for_others": current.filter(stand_in=user),
        "everybody": current if arranges else [],
        "past": (found if arranges else found.filter(person=user)).exclude(pk__in=current).order_by("-ends")[:PAST],
        "people": _people() if arranges else [],
        "remit": remit,
        "mine": Remit.objects.filter(user=user).first(),
        "zone": timezone.get_current_timezone_name(),
        "working": working_calendar.in_words(),
    }
    return render(request, "agentops/absences.html", context, status=status)


def _people() -> list[dict[str, Any]]:
    found = rights.voters().select_related("remit").order_by("first_name", "last_name", "username")
    people = []
    for user in found:
        remit: Remit | None = getattr(user, "remit", None)
        limits = remit.limits.items() if remit else ()
        written = ", ".join(f"{currency}={Money(int(minor), currency).plain()}" for currency, minor in limits)
        people.append({"user": user, "remit": remit, "limits": written})
    return people


@require_POST
@needs("")
def end(request: HttpRequest, absence_id: uuid.UUID) -> HttpResponse:
    if someone_else(request):
        messages.error(request, SOMEONE_ELSE)
        return redirect("absences")
    result = absences.end(absence_id=absence_id, by=user_of(request))
    if result.code == NO_RIGHT:
        return refused(request, reason=WORDS[NO_RIGHT])
    if result.ok:
        messages.success(request, "Ended. Answers given until now stay.")
    else:
        messages.error(request, WORDS[result.code])
    return redirect("absences")


@require_POST
@needs(absences.ARRANGE)
def set_remit(request: HttpRequest) -> HttpResponse:
    if someone_else(request):
        messages.error(request, SOMEONE_ELSE)
        return redirect("absences")
    user, form = user_of(request), RemitForm(request.POST)
    if not form.is_valid():
        return _page(request, AbsenceForm(user=user, initial=_initial(user)), remit=form, status=422)
    chosen = form.cleaned_data
    result = absences.set_remit(
        user_id=chosen["user"], team=chosen["team"], region=chosen["region"], limits=chosen["limits"], by=user
    )
    if result.code == NO_RIGHT:
        return refused(request, reason=WORDS[NO_RIGHT])
    if result.ok:
        messages.success(request, "Kept. It counts from the next answer on.")
    else:
        messages.error(request, WORDS[result.code])
    return redirect("absences")
