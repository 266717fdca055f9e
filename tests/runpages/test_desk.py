"""The desk: the queue, the comparison, and verdicts that demand their evidence and can never send."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.test import Client

from reconciliation import comparison
from reconciliation.models import Attempt, Case, Operation
from tests.runpages import scenes, world
from tests.runpages.billing import Billing, record

AGO = world.NOW - dt.timedelta(hours=5)
SEE, SETTLE = "reconciliation.view_case", "reconciliation.settle_case"
Maker = Callable[..., Client]


def html(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


@pytest.fixture
def case(db: str, billing: Billing) -> Case:
    """Billing shows another amount than was sent, and goes on showing it."""
    found: Case = scenes.in_a_case(AGO)[1].cases.get()
    billing.records = (record(found.operation.identity),)
    return found


@pytest.fixture
def tomas(signed_in: Maker) -> Client:
    return signed_in(SEE, SETTLE, name="tomas")


def me(name: str = "tomas", **more: Any) -> dict[str, Any]:
    return {"as_user": str(world.person(name).pk), **more}


def claimed(client: Client, case: Case, name: str = "tomas") -> None:
    assert client.post(f"/cases/{case.number}/claim", me(name)).status_code == 302
    case.refresh_from_db()
    assert case.state == "claimed"


HAPPENED = {"verdict": "happened", "reference_happened": "CR-5519", "evidence_happened": "seen in billing"}


def test_the_queue_shows_cases_and_what_is_still_asked_about(case: Case, tomas: Client) -> None:
    _, operation = scenes.unknown(AGO, title="Other", subject="CS-2", customer="Harbour Travel")
    page = html(tomas.get("/cases/"))
    assert case.label in page and "one record, not as sent" in page and "Harbour Travel" in page
    assert "$2,400.00" in page, "both at risk, each once"
    assert f"/operations/{operation.pk}/probe" in page
    assert "No open cases" not in page


def test_the_empty_desk_says_so(db: str, tomas: Client) -> None:
    page = html(tomas.get("/cases/"))
    assert "No open cases" in page and "Nothing is being asked about" in page


def test_differences_are_marked_and_the_rest_is_not_called_the_same(case: Case, tomas: Client) -> None:
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "$1,200.00 USD" in page and "$1,000.00 USD" in page
    operation = case.operation
    observed = operation.observations.get(finding="different").raw
    found = comparison.compare(effect=operation.effect, identity=operation.identity, observed=observed)
    tells = {row.label: row.tell for row in found[0].rows}
    assert tells["Amount"] == "differs" and tells["Identity"] == "same" and tells["Billed as"] == "same"
    assert tells["Text on the invoice"] == "not compared", "likeness or unlikeness of texts is not for us to judge"
    assert found[0].differs


def test_what_is_not_compared_is_folded_and_fields_are_words(
    case: Case, tomas: Client, owner: psycopg.Connection
) -> None:
    more = """{"balance_minor": "20000", "reason": "sla_breach"}"""
    owner.execute(
        "UPDATE reconciliation_operation SET effect = effect || %s::jsonb WHERE id = %s", [more, case.operation_id]
    )
    page = html(tomas.get(f"/cases/{case.number}/"))
    table, _, rest = page.partition('<details class="fold raw-fold">')
    assert "more fields that billing does not return in this form" in rest
    assert "not compared" not in page and "$1,000.00 USD" in table
    for shown in ("Text on the invoice", "Added to the customer’s balance", "$200.00 USD", "SLA breach"):
        assert shown in rest and shown not in table
    told = page.split("<pre>")[0] + "".join(part.split("</pre>")[1] for part in page.split("<pre>")[1:])
    for code in ("balance_minor", "Balance minor", "sla_breach"):
        assert code not in told


def test_the_same_answer_again_is_one_line_and_another_is_not(case: Case, tomas: Client) -> None:
    operation, last = case.operation, case.operation.observations.order_by("at").last()
    assert last is not None
    for minute in range(1, 9):
        at = last.at + dt.timedelta(minutes=minute)
        world.observe(operation, "different", at, last.summary, conclusive=True, raw=last.raw)
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "<b>9 times the same</b>, last" in page and page.count("one record, not as sent") == 1
    world.observe(operation, "different", at + dt.timedelta(1), last.summary, conclusive=True, raw={"records": []})
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "<b>9 times the same</b>" in page and page.count("one record, not as sent") == 2


def test_an_answer_that_is_not_as_sent_is_not_called_done(case: Case, tomas: Client) -> None:
    at = AGO + dt.timedelta(hours=4, minutes=30)
    world.attempt(case.operation, 3, at, closed_at=at + dt.timedelta(seconds=1), result="done")
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "Attempt 3, answered as sent" in page and "Not begun after" not in page
    world.observe(case.operation, "different", at, "CR-5519, but not as sent", source="sender")
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "Attempt 3, answered, but not as sent" in page and "Attempt 3, answered as sent" not in page


@pytest.mark.parametrize(
    "observed", [{}, {"records": None}, {"records": ["x", {}]}, {"records": [{"mismatch": {"a": []}}]}]
)
def test_an_odd_raw_record_is_no_error(observed: dict[str, Any]) -> None:
    for found in comparison.compare(effect=dict(world.EFFECT), identity="i", observed=observed):
        assert found.rows


def test_every_verdict_demands_its_evidence_and_keeps_what_was_typed(case: Case, tomas: Client) -> None:
    claimed(tomas, case)
    typed = "kept while it is wrong"
    wrong = [
        {"verdict": "happened", "evidence_happened": typed},
        {"verdict": "differently", "reference_differently": "CR-1", "evidence_differently": typed},
        *(
            {"verdict": "differently", "reference_differently": "CR-1", "evidence_differently": typed,
             "actual_differently": amount}
            for amount in ("-5", "0", "1e2", "1_000", "NaN", "١٢", "10.001", "")
        ),
        {"verdict": "did_not", "evidence_did_not": "  ", "evidence_happened": typed},
        {"verdict": "twice", "reference_twice": "A", "other_reference_twice": "A", "evidence_twice": typed},
        {"verdict": "pay again", "evidence_happened": typed},
        {"evidence_happened": typed},
    ]  # fmt: skip
    for form in wrong:
        answer = tomas.post(f"/cases/{case.number}/settle", me(**form))
        assert answer.status_code == 422 and typed in html(answer), form
        assert any(told in html(answer) for told in ("field-error", "Choose", "Not while billing shows")), form
    case.refresh_from_db()
    assert case.state == "claimed" and case.operation.state == "unknown"


DIFFERENTLY = {
    "verdict": "differently", "reference_differently": "CR-5519", "evidence_differently": "less was booked",
    "actual_differently": "1000.00",
}  # fmt: skip
TWICE = {"verdict": "twice", "reference_twice": "CR-5519", "other_reference_twice": "CR-2", "evidence_twice": "both"}


@pytest.mark.parametrize(
    ("form", "shown", "told"),
    [
        (HAPPENED, ["CR-5519"], "CR-5519 is not what was sent: Amount: sent $1,200.00 USD, recorded $1,000.00 USD."),
        (DIFFERENTLY | {"actual_differently": "900"}, ["CR-5519"], "Billing shows $1,000.00 USD for CR-5519."),
        (DIFFERENTLY | {"reference_differently": "CR-7"}, ["CR-5519"], "leaves some of that out"),
        (DIFFERENTLY, ["CR-5519", "CR-2"], "Billing shows CR-2, CR-5519 under our identity, and your verdict leaves"),
        (TWICE, ["CR-5519"], "Billing shows CR-5519 under our identity and not CR-2."),
        (TWICE, ["CR-5519", "CR-2", "CR-3"], "of more, have some undone at billing first"),
    ],
)
def test_a_verdict_against_what_billing_shows_is_refused(
    case: Case, tomas: Client, billing: Billing, form: dict[str, Any], shown: list[str], told: str
) -> None:
    claimed(tomas, case)
    billing.records = tuple(record(case.operation.identity, one) for one in shown)
    answer = tomas.post(f"/cases/{case.number}/settle", me(**form))
    assert answer.status_code == 409 and told in html(answer)
    assert form[f"evidence_{form['verdict']}"] in html(answer), "what was typed stays"
    case.refresh_from_db()
    assert (case.state, Operation.objects.get(pk=case.operation_id).state) == ("claimed", "unknown")


@pytest.mark.parametrize(
    ("form", "state", "shown"),
    [
        (HAPPENED, "succeeded", []),
        (DIFFERENTLY, "succeeded", ["CR-5519"]),
        (TWICE, "succeeded", ["CR-5519", "CR-2"]),
    ],
)
def test_a_verdict_settles_and_sends_nothing(
    case: Case, tomas: Client, billing: Billing, form: dict[str, Any], state: str, shown: list[str]
) -> None:
    if not shown:  # nobody answers, and nothing was ever shown
        case = world.open_case(scenes.unknown(AGO, subject="CS-3")[1], "asked 8 times; billing did not answer")
    billing.records = tuple(record(case.operation.identity, one) for one in shown) or None
    claimed(tomas, case)
    attempts = Attempt.objects.count()
    answer = tomas.post(f"/cases/{case.number}/settle", me(**form), follow=True)
    assert "is settled. Nothing was sent" in html(answer)
    case.refresh_from_db()
    assert (case.state, case.verdict, case.evidence) == ("resolved", form["verdict"], form[f"evidence_{case.verdict}"])
    assert Operation.objects.get(pk=case.operation_id).state == state
    assert Attempt.objects.count() == attempts
    page = html(tomas.get(f"/cases/{case.number}/"))
    assert "Settled" in page and "Record the verdict" not in page
    again = tomas.post(f"/cases/{case.number}/settle", me(**form))
    assert billing.asked == 1, "just before it was recorded, and not for a case that nobody has"
    assert again.status_code == 409 and "settled already" in html(again)


def test_only_who_has_the_case_settles_it(case: Case, tomas: Client, signed_in: Maker) -> None:
    noor = signed_in(SEE, SETTLE, name="noor")
    unclaimed = tomas.post(f"/cases/{case.number}/settle", me(**HAPPENED))
    assert unclaimed.status_code == 409 and "Claim the case first" in html(unclaimed)
    assert "seen in billing" in html(unclaimed)
    claimed(tomas, case)
    refused = noor.post(f"/cases/{case.number}/settle", me("noor", **HAPPENED))
    assert refused.status_code == 409 and "Tomas Example has this case" in html(refused)
    assert "Tomas Example has it until" in html(noor.get(f"/cases/{case.number}/"))
    assert "is back in the queue" in html(tomas.post(f"/cases/{case.number}/release", me(), follow=True))
    case.refresh_from_db()
    assert case.state == "open"


def test_rights_and_logins_are_checked_on_every_post(case: Case, signed_in: Maker, tomas: Client) -> None:
    looker = signed_in(SEE, name="olga")
    posts = [f"/cases/{case.number}/{name}" for name in ("claim", "release", "settle")]
    posts.append(f"/operations/{case.operation_id}/probe")
    for path in posts:
        assert looker.post(path, me("olga", **HAPPENED)).status_code == 403, path
        assert tomas.post(path, {**HAPPENED, "as_user": "0"}).status_code == 403, path
        assert tomas.get(path).status_code == 405, path
    case.refresh_from_db()
    assert case.state == "open" and case.operation.state == "unknown"
    assert "may look at cases but not settle" in html(looker.get(f"/cases/{case.number}/"))


def test_asking_again_is_a_question_only(case: Case, tomas: Client) -> None:
    attempts, before = Attempt.objects.count(), case.operation.next_probe_at
    page = tomas.post(f"/operations/{case.operation_id}/probe", me(case=str(case.number)), follow=True)
    assert "The other side is asked now. Nothing else is sent" in html(page)
    claimed(tomas, case)
    still = tomas.post(f"/cases/{case.number}/settle", me(verdict="still"), follow=True)
    assert "The other side is asked now" in html(still)
    operation = Operation.objects.get(pk=case.operation_id)
    assert operation.state == "unknown" and operation.next_probe_at != before
    assert Attempt.objects.count() == attempts


def test_what_does_not_exist_is_not_found(db: str, tomas: Client) -> None:
    for path in ("/cases/1/", "/cases/99999999999999999999999/"):
        assert tomas.get(path).status_code == 404
    for path in ("/cases/1/claim", "/cases/1/settle", "/operations/00000000-0000-0000-0000-000000000000/probe"):
        assert tomas.post(path, me()).status_code == 404
