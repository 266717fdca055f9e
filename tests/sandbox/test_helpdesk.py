"""The help desk: versions, recorded changes, comments and drafts, incidents, accounts and plans."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.sandbox import places
from tests.sandbox.places import Place
from tests.sandbox_process import SandboxRefused


def test_sources_of_evidence_are_read_with_their_versions(place: Place) -> None:
    ticket = place.helpdesk("GET", f"tickets/{place.ticket}").json()
    assert (ticket["account"], ticket["incident"], ticket["version"]) == (place.account, place.incident, 1)
    incident = place.helpdesk("GET", f"incidents/{place.incident}").json()
    assert (incident["version"], incident["final"], incident["affected"]) == (5, True, [place.account])
    account = place.helpdesk("GET", f"accounts/{place.account}").json()
    assert (account["billing_customer"], account["plan"], account["standing"]) == (place.customer, "business", "good")
    plan = place.helpdesk("GET", "plans/business").json()
    assert plan["sla"]["version"] == "2026-02" and plan["sla"]["tiers"][0] == {"below": "99.5", "percent": "25"}
    missing = place.helpdesk("GET", "incidents/INC-none")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "resource_missing")


def test_a_change_needs_the_current_version(place: Place) -> None:
    path = f"tickets/{place.ticket}"
    without = place.helpdesk("PATCH", path, {"status": "pending"})
    assert (without.status_code, without.json()["error"]["field"]) == (428, "If-Match")
    changed = place.helpdesk("PATCH", path, {"status": "pending"}, version=1, identity=f"{place.ticket}/a")
    assert (changed.status_code, changed.json()["version"], changed.headers["ETag"]) == (200, 2, '"2"')
    stale = place.helpdesk("PATCH", path, {"status": "solved"}, version=1, identity=f"{place.ticket}/b")
    assert (stale.status_code, stale.json()["error"]["current_version"]) == (412, 2)
    assert place.helpdesk("GET", path).json()["status"] == "pending"
    assert place.effects(f"{place.ticket}/b") == []


def test_a_change_is_found_by_its_identity(place: Place) -> None:
    path = f"tickets/{place.ticket}"
    place.helpdesk("PATCH", path, {"priority": "high"}, version=1, identity=f"{place.ticket}/a")
    place.helpdesk("PATCH", path, {"fields": {"credit": "cn_1"}}, version=2, identity=f"{place.ticket}/b")
    found = place.helpdesk("GET", f"{path}/changes?identity={place.ticket}/b").json()
    assert [(change["to_version"], change["changes"]) for change in found["data"]] == [
        (3, {"fields": [{}, {"credit": "cn_1"}]})
    ]
    assert len(place.helpdesk("GET", f"{path}/changes").json()["data"]) == 2
    [row] = place.effects(f"{place.ticket}/b")
    assert (row["operation"], row["objects"]["ticket"]) == ("helpdesk.tickets.update", place.ticket)


def test_of_two_changes_on_one_version_one_is_made(place: Place) -> None:
    def change(n: int) -> int:
        path = f"tickets/{place.ticket}"
        return place.helpdesk("PATCH", path, {"assignee": f"p{n}"}, version=1, key=f"{place.ticket}:{n}").status_code

    with ThreadPoolExecutor(max_workers=6) as pool:
        statuses = sorted(pool.map(change, range(6)))
    assert statuses == [200, 412, 412, 412, 412, 412]
    assert place.helpdesk("GET", f"tickets/{place.ticket}").json()["version"] == 2


def test_somebody_elses_edit_moves_the_version(place: Place) -> None:
    assert place.sandbox.touch(place.ticket)["version"] == 2
    answer = place.helpdesk("PATCH", f"tickets/{place.ticket}", {"status": "solved"}, version=1)
    assert answer.status_code == 412
    place.sandbox.faults({"mode": "precondition", "match": {"ticket": place.ticket}})
    forced = place.helpdesk("PATCH", f"tickets/{place.ticket}", {"status": "solved"}, version=2)
    assert (forced.status_code, forced.json()["error"]["current_version"]) == (412, 3)
    assert place.helpdesk("PATCH", f"tickets/{place.ticket}", {"status": "solved"}, version=3).status_code == 200


def test_what_stands_in_a_record_is_changed_there_or_refused_by_its_name(place: Place) -> None:
    before = next(one for one in place.sandbox.world()["accounts"] if one["id"] == place.account)
    assert place.sandbox.edit("account", place.account, standing="suspended")["version"] == before["version"] + 1
    assert place.sandbox.ledger()[-1]["operation"] == "helpdesk.records.edit"
    wrong: list[tuple[str, str, dict[str, Any], int, str]] = [
        ("account", "nobody", {"standing": "good"}, 404, "id"),
        ("account", place.account, {"colour": "red"}, 400, "set.colour"),
        ("account", place.account, {"version": 9}, 400, "set.version"),
        ("account", place.account, {"standing": 1}, 400, "set.standing"),
        ("account", place.account, {"standing": None}, 400, "set.standing"),
        ("ticket", place.ticket, {"status": "open"}, 400, "kind"),
    ]
    for kind, id, changes, status, param in wrong:
        with pytest.raises(SandboxRefused) as refused:
            place.sandbox.edit(kind, id, **changes)
        assert (refused.value.status, refused.value.error["field"]) == (status, param)
    after = next(one for one in place.sandbox.world()["accounts"] if one["id"] == place.account)
    assert after == {**before, "standing": "suspended", "version": before["version"] + 1}


TIERS = [{"below": "99.9", "percent": "10"}]


@pytest.mark.parametrize(
    ("kind", "changes", "field"),
    [
        ("plan", {"sla": {"version": "", "tiers": TIERS}}, "version"),
        ("plan", {"sla": {"version": "2", "tiers": [{"below": "99.9", "percent": "101"}]}}, "sla.tiers.percent"),
        ("plan", {"sla": {"version": "2", "tiers": [{"below": "a lot", "percent": "1"}]}}, "sla.tiers.below"),
        ("plan", {"sla": {"version": "2", "tiers": ["none"]}}, "tiers"),
        ("account", {"name": ""}, "name"),
        ("account", {"name": "x" * 301}, "name"),
        ("account", {"billing_customer": "c" * 101}, "billing_customer"),
        ("account", {"plan": "nowhere"}, "plan"),
        ("incident", {"title": "x" * 1001}, "title"),
        ("incident", {"started_at": "yesterday"}, "started_at"),
        ("incident", {"ended_at": "soon"}, "ended_at"),
        ("incident", {"ended_at": "2020-01-01"}, "ended_at"),
    ],
)
def test_a_record_is_changed_to_nothing_that_a_world_could_not_be_loaded_with(
    place: Place, kind: str, changes: dict[str, Any], field: str
) -> None:
    own = f"{place.account}-plan"
    place.sandbox.world({"plans": [{"id": own, "sla": {"version": "1", "tiers": TIERS}}]})
    id = {"plan": own, "account": place.account, "incident": place.incident}[kind]
    [before] = [one for one in place.sandbox.world()[f"{kind}s"] if one["id"] == id]
    with pytest.raises(SandboxRefused) as loaded:
        place.sandbox.world({f"{kind}s": [{**before, **changes, "id": f"{id}-new"}]})
    with pytest.raises(SandboxRefused) as edited:
        place.sandbox.edit(kind, id, **changes)
    assert (loaded.value.status, loaded.value.error["field"]) == (400, f"{kind}s[0].{field}")
    assert (edited.value.status, edited.value.error["field"]) == (400, f"set.{field}")
    assert before in place.sandbox.world()[f"{kind}s"], "and it is as it was"


def test_a_record_is_changed_to_all_that_follows_from_it(place: Place) -> None:
    own = f"{place.account}-plan"
    place.sandbox.world({"plans": [{"id": own, "sla": {"version": "1", "tiers": TIERS}}]})
    assert place.sandbox.edit("plan", own, sla={"version": "2", "tiers": []})["version"] == "2"
    place.sandbox.edit("account", place.account, billing_customer=f"{place.customer}-new")
    assert place.billing().v1.customers.retrieve(f"{place.customer}-new").metadata["account"] == place.account


@pytest.mark.parametrize("kind", ["comments", "drafts"])
def test_writing_is_made_once_per_key_and_found_by_identity(place: Place, kind: str) -> None:
    path = f"tickets/{place.ticket}/{kind}"
    call = {"identity": f"{place.ticket}/a", "key": f"{place.ticket}/{kind}:0"}
    first = place.helpdesk("POST", path, {"body": "We credited $1,200."}, **call)  # type: ignore[arg-type]
    again = place.helpdesk("POST", path, {"body": "We credited $1,200."}, **call)  # type: ignore[arg-type]
    other = place.helpdesk("POST", path, {"body": "Something else"}, **call)  # type: ignore[arg-type]
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert first.json() == again.json() and again.headers["Idempotent-Replayed"] == "true"
    assert len(place.effects(f"{place.ticket}/a")) == 1
    for n in range(4):
        place.helpdesk("POST", path, {"body": f"More {n}"}, identity=f"{place.ticket}/more")
    found = place.helpdesk("GET", f"{path}?identity={place.ticket}/a").json()
    assert [item["id"] for item in found["data"]] == [first.json()["id"]]
    page = place.helpdesk("GET", f"{path}?identity={place.ticket}/more&limit=3").json()
    rest = place.helpdesk("GET", f"{path}?identity={place.ticket}/more&starting_after={page['data'][-1]['id']}").json()
    assert (len(page["data"]), page["has_more"], len(rest["data"]), rest["has_more"]) == (3, True, 1, False)


def test_faults_reach_the_help_desk_too(place: Place) -> None:
    path = f"tickets/{place.ticket}/comments"
    match = {"ticket": place.ticket}
    place.sandbox.faults(
        {
            "mode": "execute_then_5xx",
            "operation": "helpdesk.comments.create",
            "match": match,
            "params": {"status": 503},
        },
        {"mode": "param_mismatch", "operation": "helpdesk.comments.create", "match": match},
        {"mode": "wrong_account", "operation": "helpdesk.comments.create", "match": match},
    )
    call = {"identity": f"{place.ticket}/a", "key": f"{place.ticket}:0"}
    assert place.helpdesk("POST", path, {"body": "x"}, **call).status_code == 503  # type: ignore[arg-type]
    assert place.helpdesk("POST", path, {"body": "x"}, **call).status_code == 422  # type: ignore[arg-type]
    assert len(place.effects(f"{place.ticket}/a")) == 1
    places.settle(place.sandbox)  # clears the fault that is left, so that it is queued anew below
    place.sandbox.faults({"mode": "wrong_account", "operation": "helpdesk.comments.create", "match": match})
    stray = place.helpdesk("POST", path, {"body": "y"}, identity=f"{place.ticket}/b").json()
    assert stray["ticket"] != place.ticket and stray["account"] != place.account


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "tickets/{}", {"colour": "red"}, "colour"),
        ("PATCH", "tickets/{}", {"status": "lost"}, "status"),
        ("PATCH", "tickets/{}", {"tags": "red"}, "tags"),
        ("PATCH", "tickets/{}", {"fields": {"a": []}}, "fields"),
        ("PATCH", "tickets/{}", {}, "body"),
        ("POST", "tickets/{}/comments", {}, "body"),
        ("POST", "tickets/{}/comments", {"body": "x" * 20_001}, "body"),
        ("POST", "tickets/{}/comments", {"body": "x", "public": "yes"}, "public"),
        ("GET", "tickets/{}/comments?limit=0", None, "limit"),
        ("GET", "tickets/{}/comments?starting_after=cmt_none", None, "starting_after"),
    ],
)
def test_wrong_input_is_refused_by_field(place: Place, method: str, path: str, body: None, field: str) -> None:
    answer = place.helpdesk(method, path.format(place.ticket), body, version=1, identity=f"{place.ticket}/a")
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert answer.json()["error"]["message"]
    assert place.effects(f"{place.ticket}/a") == []
