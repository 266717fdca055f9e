"""The stand-in for the outside world, as the demo's own page: what is in it, what really happened, and its faults.

Everything goes through the sandbox's control API with short time limits; when it does not answer, the page says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import quote

import requests
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agentops.pages import sandbox_words as words
from runs import clock
from runs.access import View, needs, refused, someone_else
from runs.forms import Form
from runs.money import MoneyError, parse_amount

LIMITS = (1.0, 3.0)  # seconds to connect, seconds between bytes
LEDGER_ROWS = 60
CALLS_SHOWN = 10  # the rest is folded away
RIGHTS = ("runs.operate_run", "reconciliation.settle_case")


class SandboxDown(Exception):
    """No answer in time."""


class SandboxSaidNo(Exception):
    """It answered with an error; the message is for people."""


def call(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """One call of the control API, without retries. Raises SandboxDown or SandboxSaidNo."""
    try:
        with requests.Session() as session:
            session.trust_env = False  # a proxy has no business between two processes of one machine
            answer = session.request(
                method, f"{settings.SANDBOX_URL.rstrip('/')}/_sandbox/{path}", json=body, timeout=LIMITS
            )
            found = answer.json()
    except (requests.RequestException, ValueError, RecursionError) as error:
        raise SandboxDown(str(error)) from error
    if answer.status_code >= 400:
        raise SandboxSaidNo(str((found.get("error") or {}).get("message", f"status {answer.status_code}")))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the page shows; lists as the control API gives them, the ledger newest first."""

    modes: list[dict[str, Any]]  # as offered by the form
    faults: list[dict[str, Any]]
    invoices: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    requests: list[dict[str, Any]]


def look() -> World:
    world = call("GET", "world")
    accounts = {one.get("billing_customer"): one.get("name") for one in world["accounts"]}
    invoices = [{**one, "account_name": accounts.get(one.get("customer"), "")} for one in world["invoices"]]
    modes = call("GET", "modes")["data"]
    active = [one for one in call("GET", "faults")["data"] if one["active"]]
    return World(
        modes=modes,
        faults=[_in_words(one, mode=one["mode"], modes=modes) for one in active],
        invoices=[one for one in invoices if one.get("status") != "void"],
        ledger=[_in_words(one) for one in _newest("ledger")],
        requests=[_in_words(one, mode=one.get("fault") or "", modes=modes) for one in _newest("requests")],
    )


def _in_words(row: dict[str, Any], *, mode: str = "", modes: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    found = {**row, "words": words.operation(name=str(row.get("operation") or ""))}
    return {**found, "fault_words": words.fault(name=mode, modes=modes)} if mode else found


def _newest(name: str) -> list[dict[str, Any]]:
    """The last rows of a list that is read oldest first, a page of 1000 at a time."""
    rows: list[dict[str, Any]] = []
    after = 0
    while True:
        page = call("GET", f"{name}?after={after}")["data"]
        rows = (rows + page)[-LEDGER_ROWS:]
        if len(page) < 1000:
            return rows[::-1]
        after = page[-1]["seq"]


class FaultForm(Form):
    mode = forms.ChoiceField(label="What goes wrong")
    operation = forms.ChoiceField(label="With which calls")
    times = forms.IntegerField(label="For how many calls", min_value=1, max_value=1000, initial=1)
    seconds = forms.FloatField(
        label="Seconds", required=False, min_value=0, max_value=600, help_text="Only where the fault takes a time."
    )

    def __init__(self, *args: Any, modes: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.takes_seconds = {one["name"] for one in modes if "seconds" in one["parameters"]}
        self.fields["mode"] = forms.ChoiceField(
            label="What goes wrong", choices=words.modes_in_use(modes=modes), initial="execute_and_timeout"
        )
        self.fields["operation"] = forms.ChoiceField(
            label="With which calls", choices=words.calls_in_use(), initial="billing.credit_notes.create"
        )

    def spec(self) -> dict[str, Any]:
        data = self.cleaned_data
        seconds = data.get("seconds")
        given = {"seconds": seconds} if seconds is not None and data["mode"] in self.takes_seconds else {}
        return {"mode": data["mode"], "operation": data["operation"], "times": data["times"], "params": given}


def in_the_demo(view: View) -> View:
    """Only in the demo world with a sandbox, and only for people who operate runs or settle cases."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not (settings.DEMO and settings.SANDBOX_URL):
            raise Http404
        if not any(request.user.has_perm(right) for right in RIGHTS):
            return refused(request, reason="Only support staff and admins may change the demo's outside world.")
        return view(request, *args, **kwargs)

    return needs("")(checked)


def _page(request: HttpRequest, form: Callable[[list[dict[str, Any]]], FaultForm], status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {"section": "sandbox", "now": clock.now()}
    try:
        world = look()
    except (SandboxDown, SandboxSaidNo) as error:
        return render(request, "sandbox/sandbox.html", {**context, "down": str(error)[:300]}, status=503)
    first, rest = world.requests[:CALLS_SHOWN], world.requests[CALLS_SHOWN:]
    context |= {"world": world, "form": form(world.modes), "calls": first, "more_calls": rest}
    return render(request, "sandbox/sandbox.html", context, status=status)


@require_GET
@in_the_demo
def sandbox(request: HttpRequest) -> HttpResponse:
    return _page(request, lambda modes: FaultForm(modes=modes))


def _change(request: HttpRequest, act: Callable[[], Any], *, done: str) -> HttpResponse:
    try:
        act()
    except SandboxSaidNo as error:
        messages.error(request, f"The sandbox refused: {error}")
    except SandboxDown:
        messages.error(request, "The sandbox did not answer, so it is not known whether this was done. Look again.")
    else:
        messages.success(request, done)
    return redirect("sandbox")


@require_POST
@in_the_demo
def sandbox_fault(request: HttpRequest) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    try:
        modes = call("GET", "modes")["data"]
        form = FaultForm(request.POST, modes=modes)
    except (SandboxDown, SandboxSaidNo):
        return _page(request, lambda modes: FaultForm(request.POST, modes=modes))
    if not form.is_valid():
        return _page(request, lambda modes: form, status=422)
    spec = form.spec()
    what, when = words.operation(name=spec["operation"]), words.fault(name=spec["mode"], modes=modes)
    done = f"Set for the next {spec['times']} of “{what}”: {when}"
    return _change(request, lambda: call("POST", "faults", spec), done=done)


@require_POST
@in_the_demo
def sandbox_clear(request: HttpRequest) -> HttpResponse:
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    seq = request.POST.get("seq", "")
    one = f"?seq={seq}" if seq.isascii() and seq.isdigit() and len(seq) < 16 else ""
    return _change(request, lambda: call("DELETE", f"faults{one}"), done="The outside world behaves again.")


@require_POST
@in_the_demo
def sandbox_correct(request: HttpRequest) -> HttpResponse:
    """Somebody in finance corrects an invoice, as billing does it: a revision takes its place."""
    if someone_else(request):
        return refused(request, reason="This page was opened under another login, so nothing was changed.")
    number, currency = request.POST.get("invoice", "")[:100], request.POST.get("currency", "")
    try:
        total = parse_amount(text=request.POST.get("total", "").strip(), currency=currency)
    except MoneyError as error:
        messages.error(request, f"The new total of {number or 'the invoice'} {error}. Nothing was changed.")
        return redirect("sandbox")
    body = {"total_minor": total.minor, "reason": "corrected by hand in the demo"}
    done = f"{number} was corrected to {total}. Approvals that rest on it are out of date."
    return _change(request, lambda: call("POST", f"invoices/{quote(number, safe='')}/correct", body), done=done)
