"""Whoever starts a run may leave it less than its workflow grants, and never more."""

import datetime as dt
from typing import Any

import pytest

from agentops.narrowing import BadTerms, Less, narrowed
from agentops.workflows.service_credit import ServiceCredit
from approvals import capabilities
from runs import clock
from runs.models import Event, Run
from tests.api.caller import Caller, faults, ticket

CREDIT = "billing.create_credit"
SMALL = "currency == 'USD' && amount_minor <= 500"
LATER = "2999-01-31T18:00:00+01:00"


def body(**given: Any) -> dict[str, Any]:
    return {**ticket(), "capabilities": given.get("capabilities", {CREDIT: given})}


def test_a_run_is_left_only_what_is_named_and_only_so_far(desk: Caller) -> None:
    sent = body(only={"account": ["ACC-1", "ACC-2"], "ticket": ["CS-8812", "CS-1"]}, when=SMALL)
    assert desk.start(sent).status_code == 201
    run = Run.objects.get()
    assert run.capabilities == [CREDIT] and set(run.terms) == {CREDIT}
    terms = run.terms[CREDIT]
    assert terms["only"] == {"ticket": ["CS-8812"], "account": ["ACC-1", "ACC-2"]}
    assert (terms["when"], "until" in terms) == (SMALL, True)  # the workflow's own month
    known = {"ticket": "CS-8812", "account": "ACC-2", "amount_minor": 500, "currency": "USD"}
    for variables, code in (
        (known, ""),
        ({**known, "account": "ACC-3"}, "grant_elsewhere"),
        ({**known, "ticket": "CS-1"}, "grant_elsewhere"),
        ({**known, "amount_minor": 501}, "grant_unmet"),
    ):
        no = capabilities.withheld(run=run, tool=CREDIT, variables=variables, now=clock.now())
        assert ("" if no is None else no.code) == code
    no = capabilities.withheld(run=run, tool="helpdesk.draft_reply", variables=None, now=clock.now())
    assert no is not None and no.code == "not_granted"
    assert Event.objects.get(kind="run.started").data["terms"] == run.terms


def test_without_it_the_run_may_do_all_that_its_workflow_grants(desk: Caller) -> None:
    assert desk.start(ticket()).status_code == 201
    assert Run.objects.get().capabilities == list(ServiceCredit.tools)


def test_the_same_key_with_other_terms_is_refused_and_with_the_same_is_the_same_run(desk: Caller) -> None:
    first = desk.start(body(until=LATER))
    assert first.status_code == 201, first.json()
    assert desk.start(body(until=LATER)).json() == first.json()
    for other in (ticket(), body(until="2998-01-31T18:00:00+01:00"), body(until=LATER, when=SMALL)):
        assert desk.start(other).json()["code"] == "parameters_differ"
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"capabilities": {}}, "capabilities", "names no tool"),
        ({"capabilities": {"billing.void_credit": {}}}, "capabilities.billing.void_credit", "does not grant it"),
        ({"capabilities": {"\x00": {}}}, "capabilities.", "does not grant it"),
        ({"only": {"amount_minor": ["5"]}}, f"capabilities.{CREDIT}.only.amount_minor", "is not a text variable"),
        ({"only": {"account": []}}, f"capabilities.{CREDIT}.only.account", "give 1 to 100"),
        ({"only": {"account": ["\x00"]}}, f"capabilities.{CREDIT}.only.account", "readable"),
        ({"only": {"account": ["x" * 301]}}, f"capabilities.{CREDIT}.only.account", "readable"),
        ({"only": {"ticket": ["CS-1"]}}, f"capabilities.{CREDIT}.only.ticket", "the workflow grants only CS-8812"),
        ({"when": "true) || (true"}, f"capabilities.{CREDIT}.when", ""),
        ({"when": "amount_minor <= 5"}, f"capabilities.{CREDIT}.when", "without its currency"),
        ({"when": "nothing =="}, f"capabilities.{CREDIT}.when", ""),
        ({"when": "true" + " " * 3000}, f"capabilities.{CREDIT}.when", "characters long"),
        ({"until": "2027-01-31"}, f"capabilities.{CREDIT}.until", "with its offset"),
        ({"until": "2020-01-31T00:00:00+00:00"}, f"capabilities.{CREDIT}.until", "over already"),
        ({"until": "0001-01-01T00:00:00+14:00"}, f"capabilities.{CREDIT}.until", "with its offset"),
        ({"more": "x"}, f"capabilities.{CREDIT}.more", ""),
        ({"only": ["x"]}, f"capabilities.{CREDIT}.only", ""),
        ({"until": 5}, f"capabilities.{CREDIT}.until", ""),
    ],
)
def test_what_is_no_narrower_grant_is_refused_by_its_field(
    desk: Caller, given: dict[str, Any], field: str, message: str
) -> None:
    answer = desk.start(body(**given))
    assert answer.status_code == 422, answer.content
    found = faults(answer)
    assert any(name.startswith(field) and message in said for name, said in found.items()), found
    assert not Run.objects.exists()


def test_two_conditions_and_two_times_are_both_kept() -> None:
    had = {"when": "incident_final", "until": "2027-01-01T00:00:00+00:00"}
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    for until, kept in (("2026-06-01T02:00:00+02:00", "2026-06-01T00:00:00+00:00"), (LATER, had["until"])):
        less = Less(when=f"{SMALL} || reason == 'x'", until=until)
        tools, terms = narrowed(tools=["a", "b"], terms={"a": had}, wanted={"a": less}, now=now)
        assert tools == ["a"]
        assert terms == {"a": {"when": f"(incident_final) && ({SMALL} || reason == 'x')", "until": kept}}
    assert narrowed(tools=["a", "b"], terms={"a": had}, wanted={"b": Less(), "a": Less()}, now=now) == (
        ["a", "b"],
        {"a": had},
    )
    with pytest.raises(BadTerms, match="long"):
        long = "incident_final || " * 90 + "true"
        narrowed(tools=["a"], terms={"a": {"when": long}}, wanted={"a": Less(when=long)}, now=now)
