"""Operating by a token: only one that was made for it, only its integration's own runs, and never a vote."""

import json
from typing import Any

import pytest
from django.test import Client

from agentops import batches
from approvals.models import Freeze
from approvals.services import freezing
from runs.models import ApiToken, Run
from runs.services import principals, tokens
from tests.api.caller import Caller, ticket

ACTS = ("pause", "resume", "again", "to-person", "cancel")


class Operator(Caller):
    def post(self, path: str, **body: Any) -> Any:
        raw = json.dumps(body).encode()
        return self.client.post(f"/api/v1/{path}", raw, content_type="application/json", headers=self.headers)

    def get(self, path: str) -> Any:
        return self.client.get(f"/api/v1/{path}", headers=self.headers)

    def started(self, key: str = "k-1") -> Run:
        return Run.objects.get(pk=self.start(ticket(), key=key).json()["id"])


@pytest.fixture
def desk(db: str) -> Operator:
    return Operator(tokens.issue(name="helpdesk", label="Help desk", may_operate=True))


@pytest.fixture
def plain(db: str) -> Operator:
    """Another token of the same integration, without the right."""
    return Operator(tokens.issue(name="helpdesk", label="Help desk"))


def test_a_run_is_paused_and_resumed_and_each_refusal_has_its_code_and_sentence(desk: Operator) -> None:
    run = desk.started()
    done = desk.post(f"runs/{run.pk}/pause", reason="the prices are wrong")
    assert (done.status_code, done.json()["code"]) == (200, "ok") and "nothing new begins" in done.json()["detail"]
    again = desk.post(f"runs/{run.pk}/pause", reason="once more")
    assert (again.status_code, again.json()["code"]) == (409, "already_requested")
    assert again.json()["detail"] == "Somebody has asked for that already."
    assert desk.post(f"runs/{run.pk}/resume", reason="mended").status_code == 200
    assert desk.post(f"runs/{run.pk}/again", reason="now").json()["code"] == "at_work"
    assert desk.post(f"runs/{run.pk}/to-person", reason="please look").status_code == 200
    assert desk.post(f"runs/{run.pk}/cancel", reason="not needed").status_code == 200
    run.refresh_from_db()
    assert run.cancel_requested_at is not None and str(run.cancelled_by) == "Help desk"


@pytest.mark.parametrize("act", ACTS)
def test_a_token_that_was_not_made_for_it_may_not(desk: Operator, plain: Operator, act: str) -> None:
    run = desk.started()
    before = Run.objects.values().get(pk=run.pk)
    refused = plain.post(f"runs/{run.pk}/{act}", reason="x")
    assert (refused.status_code, refused.json()["code"]) == (403, "no_right")
    assert "--may-operate" in refused.json()["detail"]
    assert Operator(None).post(f"runs/{run.pk}/{act}", reason="x").status_code == 401
    assert Run.objects.values().get(pk=run.pk) == before


def test_only_its_own_runs_and_only_with_a_reason(desk: Operator) -> None:
    other = Operator(tokens.issue(name="other", label="Other", may_operate=True))
    run = desk.started()
    assert other.post(f"runs/{run.pk}/cancel", reason="x").status_code == 404
    wrong: list[dict[str, Any]] = [{}, *({"reason": reason} for reason in ("", "  ", 1, "x" * 2001))]
    for body in (*wrong, {"reason": "x", "more": 1}):
        assert desk.post(f"runs/{run.pk}/cancel", **body).status_code == 422, body
    for act in ("approve", "vote", "reject", "signals"):
        assert desk.post(f"runs/{run.pk}/{act}", reason="x").status_code == 422
    run.refresh_from_db()
    assert run.cancel_requested_at is None


def test_a_revoked_token_operates_nothing_any_more(desk: Operator) -> None:
    run = desk.started()
    assert tokens.revoke(token_id=ApiToken.objects.get().pk)
    assert desk.post(f"runs/{run.pk}/cancel", reason="x").status_code == 401


def test_many_runs_with_a_result_for_each(desk: Operator, plain: Operator) -> None:
    runs = [desk.started(f"k-{number}") for number in range(3)]
    foreign = Operator(tokens.issue(name="other", label="Other")).started("f-1")
    assert desk.post(f"runs/{runs[0].pk}/pause", reason="before").status_code == 200
    ids = [str(run.pk) for run in (*runs, foreign)]
    assert plain.post("batches", act="pause", runs=ids, reason="x").status_code == 403
    started = desk.post("batches", act="pause", runs=ids, reason="the prices are wrong")
    assert started.status_code == 202 and started.json()["total"] == 3 and started.json()["results"] == []
    while batches.work_off():
        pass
    told = desk.get(f"batches/{started.json()['id']}").json()
    assert (told["done"], told["refused"]) == (2, 1) and told["finished_at"]
    by_run = {one["run"]: one for one in told["results"]}
    assert by_run[ids[0]]["code"] == "already_requested" and "asked for that already" in by_run[ids[0]]["detail"]
    assert foreign.pk not in Run.objects.filter(paused_at__isnull=False).values_list("pk", flat=True)
    assert Operator(tokens.issue(name="third", label="Third")).get(f"batches/{told['id']}").status_code == 404
    assert desk.post("batches", act="pause", runs=[str(foreign.pk)], reason="x").json()["code"] == "none_chosen"
    assert desk.post("batches", act="approve", runs=ids, reason="x").status_code == 422


def test_freezing_and_lifting_what_one_froze(desk: Operator, plain: Operator) -> None:
    assert plain.get("freezes").json() == []
    assert plain.post("freezes", scope="all", reason="x").status_code == 403
    assert desk.post("freezes", scope="tool:no.such", reason="x").json()["code"] == "unknown_scope"
    made = desk.post("freezes", scope="tool:billing.create_credit", reason="errors")
    assert made.status_code == 201 and made.json()["by"] == "Help desk"
    assert plain.get("freezes").json() == [made.json()]
    assert desk.post("freezes", scope="tool:billing.create_credit", reason="errors").json()["code"] == "already_frozen"
    theirs = freezing.freeze(scope="all", principal=principals.system(), reason="x").freeze
    assert theirs is not None
    refused = desk.post(f"freezes/{theirs.pk}/lift", reason="x")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_yours")
    assert plain.post(f"freezes/{made.json()['id']}/lift", reason="x").status_code == 403
    lifted = desk.post(f"freezes/{made.json()['id']}/lift", reason="mended")
    assert lifted.status_code == 200 and lifted.json()["lifted_at"]
    assert desk.post(f"freezes/{made.json()['id']}/lift", reason="x").json()["code"] == "already_lifted"
    assert desk.post("freezes/00000000-0000-0000-0000-000000000000/lift", reason="x").status_code == 404
    assert Freeze.objects.filter(lifted_at__isnull=True).count() == 1


def test_a_session_is_no_token(db: str) -> None:
    from tests.runpages import world

    browser = Client()
    browser.force_login(world.admin())
    answer = browser.post("/api/v1/freezes", b'{"scope": "all", "reason": "x"}', content_type="application/json")
    assert answer.status_code == 401
