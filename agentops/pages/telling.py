"""How a person is told and works, on a page of their own; for the overview, what waits to be told or could not be."""

import datetime as dt
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.db.models import Count, Max, Min, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from approvals.models import Announcement, Delivery, Notice, Preference
from approvals.services import preferences as wishes
from approvals.services import saved_views
from approvals.services.preferences import zones
from runs import clock
from runs.access import needs, someone_else, user_of
from runs.forms import Form

LATELY = dt.timedelta(days=7)
HOURS = (1, 2, 4, 8, 12, 24)
SOMEONE_ELSE = "You are signed in as someone else than when this page was opened. Nothing was changed."


class PreferenceForm(Form):
    mail = forms.ChoiceField(
        label="Mail",
        choices=Preference.Mail.choices,
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
    )
    digest_hours = forms.TypedChoiceField(
        label="Together means",
        choices=[(hours, "every hour" if hours == 1 else f"every {hours} hours") for hours in HOURS],
        coerce=int,
    )


class WorkForm(Form):
    zone = forms.ChoiceField(
        label="Times are shown in",
        required=False,
        choices=lambda: [("", "the zone of the browser I use"), *((name, name.replace("_", " ")) for name in zones())],
    )
    keys = forms.BooleanField(
        label="Single letters act",
        required=False,
        help_text="j and k move, x ticks, / searches, ? lists them all. Switched off, a letter is only a letter.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@needs("")
def mail_preferences(request: HttpRequest) -> HttpResponseBase:
    """The page, and its part about mail."""
    user = user_of(request)
    if request.method == "POST" and someone_else(request):
        messages.error(request, SOMEONE_ELSE)
        return redirect("preferences")
    wish = wishes.of(user=user)
    initial = {"mail": wish.mail, "digest_hours": wish.digest_hours}
    form = PreferenceForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data
        wishes.save(user=user, mail=Preference.Mail(chosen["mail"]), digest_hours=chosen["digest_hours"])
        messages.success(request, "Kept. It holds for what comes from now on.")
        return redirect("preferences")
    return _page(request, form, _work_form(wish))


@require_http_methods(["GET", "HEAD", "POST"])
@needs("")
def preferences(request: HttpRequest) -> HttpResponseBase:
    """The page, and its part about zone and keys."""
    user = user_of(request)
    if request.method != "POST":
        return mail_preferences(request)
    if someone_else(request):
        messages.error(request, SOMEONE_ELSE)
        return redirect("preferences")
    work = WorkForm(request.POST)
    if work.is_valid():
        wishes.work(user=user, zone=work.cleaned_data["zone"], keys=work.cleaned_data["keys"])
        messages.success(request, "Kept. It holds wherever you sign in.")
        return redirect("preferences")
    wish = wishes.of(user=user)
    return _page(request, PreferenceForm(initial={"mail": wish.mail, "digest_hours": wish.digest_hours}), work)


@require_POST
@needs("")
def keys(request: HttpRequest) -> HttpResponse:
    """The switch beside a list: on or off, at once and for good."""
    if request.POST.get("user", "") != str(user_of(request).pk):
        return HttpResponse(status=409)
    wishes.work(user=user_of(request), keys=request.POST.get("keys") == "on")
    return HttpResponse(status=204)


def _work_form(wish: Preference) -> WorkForm:
    return WorkForm(initial={"zone": wish.zone, "keys": wish.keys})


def _page(request: HttpRequest, form: PreferenceForm, work: WorkForm) -> HttpResponse:
    told = Notice.objects.filter(recipient=user_of(request)).select_related("request", "event")
    context = {
        "section": "account",
        "now": clock.now(),
        "form": form,
        "work": work,
        "views": saved_views.of(user=user_of(request)),
        "told": told.order_by("-created_at", "-id")[:20],
    }
    return render(request, "agentops/telling.html", context, status=422 if form.errors or work.errors else 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of telling: what waits and since when, what is tried again and why, what was given up lately."""

    name: str
    icon: str
    waiting: int
    oldest: dt.datetime | None
    again: int
    problem: str
    next_try: dt.datetime | None
    given_up: int
    last: dt.datetime | None


def _way(name: str, icon: str, rows: QuerySet, *, done: str, lost: tuple[str, ...], now: dt.datetime) -> Way:
    open_rows = rows.filter(ended_at=None)
    failing = open_rows.exclude(problem="")
    counted = open_rows.aggregate(
        waiting=Count("pk", filter=Q(due_at__lte=now)),
        oldest=Min("created_at", filter=Q(due_at__lte=now)),
        again=Count("pk", filter=~Q(problem="")),
        next_try=Min("due_at", filter=~Q(problem="")),
    )
    newest = failing.order_by("-tries", "due_at").values_list("problem", flat=True).first()
    return Way(
        name=name,
        icon=icon,
        problem=newest or "",
        given_up=rows.filter(result__in=lost, ended_at__gt=now - LATELY).count(),
        last=rows.filter(result=done).aggregate(at=Max("ended_at"))["at"],
        **counted,
    )


def figures(*, now: dt.datetime) -> dict[str, object]:
    """For the overview's part about telling."""
    mail = _way("Mail", "mail", Notice.objects.all(), done="sent", lost=("given_up", "no_address"), now=now)
    hooks = _way("Webhooks", "webhook", Delivery.objects.all(), done="delivered", lost=("given_up",), now=now)
    unspread = Announcement.objects.filter(done_at=None).aggregate(n=Count("pk"), at=Min("event__at"))
    return {"ways": [mail, hooks], "unspread": unspread["n"], "unspread_since": unspread["at"]}
