"""Nothing that can be pressed or called sends an operation whose outcome is unknown, once the receiver protects its
identity no longer and nothing can be proved: every address that takes a POST, of the pages and of the API."""

import datetime as dt
import itertools
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver

from agentops import batches, engine
from agentops.pages.operating import ACTS
from reconciliation.models import Attempt, Case, Operation
from reconciliation.services import processes
from runs import clock
from runs.models import Run
from runs.services import principals, tokens
from runs.tools.billing.live import CreateCredit
from tests.desk.conftest import Desk
from tests.engine.conftest import CREATE, World

LOOKUP = "billing.credit_notes.list"
# of what stands beside a request and an API's: whatever a path may say where it names an act
WORDS = (*ACTS, "comment", "ask", "answer", "withdraw", "send-back", "amount", "claim", "release", "revoke")
# the stand-in's own pages mend its faults; accounts and the admin site know nothing of operations
BESIDE = ("sandbox/", "accounts/", "admin/", "api/v1/events/")
# what holds or ends work comes after all that could send it, and what settles the operation at the very end
LATE = ("freeze", "pause", "cancel", "settle", "confirm")

NOWHERE = (404, 405)  # there is nothing at the address that takes a word, so no worker finds anything new


def addresses(patterns: list[Any], before: str = "") -> Iterator[str]:
    for one in patterns:
        path = before + str(one.pattern)
        yield from addresses(one.url_patterns, path) if isinstance(one, URLResolver) else [path]


def filled(path: str, known: dict[str, Any]) -> Iterator[str]:
    """The path with this run, operation, request and case in it, once for each act that it may name."""
    names = re.findall(r"<(?:\w+:)?(\w+)>", path)
    wanted = [WORDS if name in ("act", "verb", "key") else (known.get(name, known["other"]),) for name in names]
    between = re.split(r"<(?:\w+:)?\w+>", path)
    for values in itertools.product(*wanted):
        yield "/" + "".join(text + str(value) for text, value in zip(between, (*values, ""), strict=True))


def late(path: str) -> int:
    return max((number for number, word in enumerate(LATE, 1) if word in path), default=0)


def test_nothing_sends_what_is_not_confirmed(world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(CreateCredit.contract, retention=dt.timedelta(seconds=1), lookup_is_conclusive=False)
    monkeypatch.setattr(CreateCredit, "contract", short)
    run = world.unknown()
    world.sandbox.settings(key_retention_seconds=0)  # another call would be another credit
    world.fault("lookup_not_found", LOOKUP, times=None)  # and says so falsely
    case, operation = desk.case(run), world.credit(run)
    time.sleep(1.1)
    root = User.objects.create_superuser("root", password="x")
    principals.of_user(user=root)
    browser = Client(raise_request_exception=False)
    browser.force_login(root)
    token = tokens.issue(name="helpdesk", label="Help desk", may_operate=True)
    known = {
        "run_id": run.pk, "operation_id": operation.pk, "request_id": world.request(run).pk, "number": case.pk,
        "process_id": Attempt.objects.get(operation=operation).sender_id, "slug": "service-credits",
        "difference_id": 1, "seq": 1, "other": operation.pk,
    }  # fmt: skip
    paths = [
        one
        for path in addresses(get_resolver().url_patterns)
        if not path.startswith(BESIDE)
        for one in filled(path, known)
    ]
    answers: dict[str, int] = {}
    for path in sorted(paths, key=late):
        if late(path) >= LATE.index("settle") + 1:
            assert world.credit(run).state == "unknown", "until here nothing was settled"
        for body in bodies(path, run=run, operation=operation, root=root):
            status = post(browser, path, body, token)
            assert status < 500, path
            answers[path] = min(answers.get(path, 999), status)
            if status not in NOWHERE:
                work(run)
            assert len(world.sandbox.requests(operation=CREATE, identity=operation.identity)) == 1, (path, body)
    assert len(world.credits()) == 1 and Attempt.objects.filter(operation=operation).count() == 1
    taken = {path for path, status in answers.items() if status < 400}
    for act in ACTS:
        assert f"/runs/{run.pk}/act/{act}" in taken, act
    for path in (f"/operations/{operation.pk}/probe", f"/cases/{case.pk}/claim", "/runs/many/do", "/switches/freeze"):
        assert path in taken, path
    assert sum(one["used"] for one in world.sandbox.listed_faults() if one["mode"] == "lookup_not_found") > 1


def bodies(path: str, *, run: Run, operation: Operation, root: User) -> Iterator[dict[str, Any]]:
    given = {
        "reason": "tried", "why": "tried", "text": "tried", "comment": "tried", "as_user": str(root.pk),
        "runs": [str(run.pk)], "run": [str(run.pk)], "all": "1", "confirmed": "1", "tool": operation.tool,
        "scope": "all", "kind": "all", "workflow": "", "choice": "approve",
    }  # fmt: skip
    if path == "/runs/many/do" or path == "/api/v1/batches":
        for act in sorted(ACTS, key=late):
            yield {**{name: value for name, value in given.items() if name != "all"}, "act": act}
    elif "/settle" in path:
        for verdict in Case.Verdict.values:
            words = {f"evidence_{verdict}": "seen", f"reference_{verdict}": "", "actual_differently": ""}
            yield {**given, **words, "verdict": verdict}
    else:
        yield given


def post(browser: Client, path: str, body: dict[str, Any], token: str) -> int:
    if not path.startswith("/api/"):
        return browser.post(path, body).status_code
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": path}
    return browser.post(path, json.dumps(body), content_type="application/json", headers=headers).status_code


def work(run: Run) -> None:
    """A worker takes the run up at once, whatever was to wait; lookups fall due as well."""
    processes.record_ended()
    Operation.objects.filter(run=run).update(next_probe_at=clock.ClockTimestamp())
    Run.objects.filter(pk=run.pk, finished_at__isnull=True).update(wake_at=clock.ClockTimestamp())
    batches.work_off()
    engine.advance(run_id=run.pk)
