"""Who may call: a live token of an integration, for its own runs, and never for anything that approves."""

import ast
import hashlib
import inspect
import uuid
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError
from django.urls import URLPattern, URLResolver, get_resolver

from agentops.api.views import api
from approvals.services import votes
from runs.models import ApiToken, Principal, Run
from runs.services import tokens
from runs.services.principals import find_or_make
from tests.api.caller import Caller, faults, ticket

READABLE = {
    "id", "workflow", "workflow_version", "title", "subject", "created_at", "url", "state", "state_label", "is_over",
    "waits_for", "outcome", "finished_at", "approval", "may", "operations",
}  # fmt: skip


HEADERS = [
    None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer", "Bearer \x00", "Bearer " + "x" * 9000,
]  # fmt: skip


def test_without_a_live_token_nothing_is_done(db: str) -> None:
    for header in HEADERS:
        caller = Caller(None)
        caller.headers = {} if header is None else {"Authorization": header}
        for answer in (caller.start(ticket()), caller.read(uuid.uuid4())):
            assert answer.status_code == 401 and answer.json()["code"] == "unauthorized", header
            assert list(faults(answer)) == ["Authorization"]
    assert not Run.objects.exists()


def test_a_bad_body_without_a_token_is_not_even_read(db: str) -> None:
    assert Caller(None).start(b"{" * 100).status_code == 401


def test_a_revoked_token_ends_at_once(desk: Caller) -> None:
    run_id = desk.start(ticket()).json()["id"]
    assert desk.read(run_id).status_code == 200
    live = ApiToken.objects.get()
    assert tokens.revoke(token_id=live.pk) and not tokens.revoke(token_id=live.pk)
    assert desk.read(run_id).status_code == 401 and desk.start(ticket("CS-2"), key="K2").status_code == 401
    assert Run.objects.count() == 1


def test_a_token_is_kept_as_its_digest_only(db: str, owner: object) -> None:
    token = tokens.issue(name="helpdesk", label="Help desk")
    kept = str(list(ApiToken.objects.values()))
    assert token not in kept and token.removeprefix("aot_") not in kept


def test_only_an_integrations_token_counts(db: str) -> None:
    """Even a token that somebody made for another kind of principal by hand."""
    others = [kind for kind in Principal.Kind if kind not in ("integration", "person")]
    assert len(others) >= 4
    for kind in others:
        principal = find_or_make(kind=kind, key=f"{kind}:x", label="X")
        token = f"aot_{kind}"
        ApiToken.objects.create(principal=principal, label="x", digest=hashlib.sha256(token.encode()).hexdigest())
        assert Caller(token).start(ticket()).status_code == 401


def test_reading_ones_own_run(desk: Caller) -> None:
    started = desk.start(ticket()).json()
    answer = desk.read(started["id"])
    found = answer.json()
    assert answer.status_code == 200 and set(found) == READABLE
    assert {key: found[key] for key in started} == started
    assert (found["state"], found["is_over"], found["operations"]) == ("queued", False, [])


def test_others_runs_do_not_exist_for_an_integration(desk: Caller, other: Caller) -> None:
    run_id = desk.start(ticket()).json()["id"]
    foreign, missing = other.read(run_id), other.read(uuid.uuid4())
    assert foreign.status_code == missing.status_code == 404 and foreign.json() == missing.json()


def test_an_address_that_names_no_run(desk: Caller) -> None:
    for name in ("x", "1", "%00", "..", "a" * 300, "None", "%F0%9F%98%80"):
        answer = desk.read(name)
        assert answer.status_code in (404, 422) and answer.json()["code"] in ("not_found", "invalid"), name


def test_a_person_signed_in_is_not_a_token(db: str) -> None:
    caller = Caller(None)
    caller.client.force_login(User.objects.create_superuser("root", password="x"))
    assert caller.start(ticket()).status_code == 401 and caller.read(uuid.uuid4()).status_code == 401


def _views(patterns: list[URLPattern | URLResolver]) -> list[URLPattern]:
    found: list[URLPattern] = []
    for one in patterns:
        found += _views(one.url_patterns) if isinstance(one, URLResolver) else [one]
    return found


BESIDE_AN_ANSWER = {
    "approvals.services": {"claiming", "closing", "freezing", "talking"},
    "approvals.services.acting": {"Acted"},
    "approvals.services.freezing": {"FreezeResult"},
    "reconciliation.services": {"reversals"},  # proposes one; it decides nothing
}


def test_nothing_in_the_api_votes_or_settles() -> None:
    """The whole list, so that a new route is a decision; and the package imports no service that decides."""
    routes = {(method, path) for path, view in api.get_openapi_schema()["paths"].items() for method in view}
    assert routes == {
        ("post", "/api/v1/runs"),
        ("get", "/api/v1/runs/{run_id}"),
        ("get", "/api/v1/operations/{operation_id}"),
        # proposes only: policy and people decide as on any other action
        ("post", "/api/v1/operations/{operation_id}/reversal"),
        # what stands beside an answer: a comment, an answer to a question, withdrawing one's own request
        ("get", "/api/v1/requests/{request_id}"),
        ("post", "/api/v1/requests/{request_id}/{verb}"),
        ("get", "/api/v1/standing-approvals"),
        ("post", "/api/v1/runs/{run_id}/signals"),
        ("post", "/api/v1/events/billing"),
        # only with a token that was made to operate, and only on what its integration started
        ("post", "/api/v1/runs/{run_id}/{act}"),
        ("post", "/api/v1/batches"),
        ("get", "/api/v1/batches/{batch_id}"),
        ("get", "/api/v1/freezes"),
        ("post", "/api/v1/freezes"),
        ("post", "/api/v1/freezes/{freeze_id}/lift"),
    }
    for path in Path(__file__).parents[2].joinpath("agentops/api").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module.startswith(("approvals.services", "reconciliation.services")):
                assert isinstance(node, ast.ImportFrom)
                assert {one.name for one in node.names} <= BESIDE_AN_ANSWER.get(module, set()), path


def test_an_integration_can_never_be_a_person_and_so_never_a_voter(desk: Caller) -> None:
    """Votes take a user and count persons; the database itself lets no other kind of principal have a user."""
    user = User.objects.create_superuser("root", password="x")
    with pytest.raises(IntegrityError, match="principal_person_has_user"):
        Principal.objects.filter(key="integration:helpdesk").update(label="x")  # its name may change ...
        Principal.objects.create(kind="integration", key="integration:y", label="y", user=user)  # ... and no more
    parameters = inspect.signature(votes.cast).parameters
    assert parameters["user"].annotation is User and "principal" not in parameters and "token" not in parameters
    with pytest.raises(DatabaseError):
        Principal.objects.filter(key="integration:helpdesk").update(kind="person", user=user)


def test_a_token_opens_no_page_of_the_people(desk: Caller) -> None:
    """Every address with no parameters, with the token and no session: none is shown."""
    plain = {
        f"/{one.pattern}"
        for one in _views(get_resolver().url_patterns)
        if not one.pattern.converters and "^" not in str(one.pattern) and "api" not in str(one.pattern)
    }
    tried = 0
    for name in ("/", "/runs/", "/admin/", "/admin/auth/user/", *sorted(plain)):
        answer = desk.client.get(name, headers=desk.headers)
        if answer.status_code == 404 or name.startswith(("/accounts/", "/health")):
            continue
        tried += 1
        shown = answer.status_code == 200 and b"agentops" in answer.content
        assert not shown or b"password" in answer.content.lower(), name
    assert tried >= 3
