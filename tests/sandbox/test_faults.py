"""Each fault mode does what it says, with the ledger as judge."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
import requests
import stripe

from tests.sandbox import places
from tests.sandbox.places import Place
from tests.sandbox_process import SandboxRefused

CREATE = "billing.credit_notes.create"


def _fault(place: Place, mode: str, **more: Any) -> None:
    place.sandbox.faults({"mode": mode, "operation": CREATE, "match": {"invoice": place.number}, **more})


def _causes(error: BaseException) -> list[str]:
    """Class names along the cause chain, with what urllib3 carries as arguments."""
    names: list[str] = []
    here: BaseException | None = error
    while here is not None:
        names += [type(here).__name__, *[type(argument).__name__ for argument in here.args]]
        here = here.__cause__ or here.__context__
    return names


@pytest.mark.parametrize(
    ("mode", "cause", "effects"),
    [
        ("execute_and_timeout", "ReadTimeout", 1),
        ("timeout_without_effect", "ReadTimeout", 0),
        ("execute_then_reset", "ConnectionResetError", 1),
        ("reset_without_effect", "ConnectionResetError", 0),
        ("cut_body", "ChunkedEncodingError", 1),
    ],
)
def test_no_whole_answer_comes_but_the_ledger_knows(place: Place, mode: str, cause: str, effects: int) -> None:
    _fault(place, mode)
    with pytest.raises(stripe.APIConnectionError) as failed:
        place.credit(500, identity=f"{place.number}/a", timeout=1.0)
    assert cause in _causes(failed.value)
    assert len(place.effects(f"{place.number}/a")) == effects
    [entry] = place.sandbox.requests(identity=f"{place.number}/a")
    assert (entry["fault"], entry["effect"]) == (mode, effects == 1)
    assert entry["status"] == (200 if mode == "cut_body" else "no answer")
    # The same key once more: an effect that happened is told of, one that did not happens now.
    place.credit(500, identity=f"{place.number}/a")
    assert len(place.effects(f"{place.number}/a")) == 1


def test_a_held_connection_ends_by_itself_and_blocks_nobody(place: Place) -> None:
    _fault(place, "execute_and_timeout", times=12, params={"seconds": 2})
    with ThreadPoolExecutor(max_workers=12) as pool:
        stuck = [pool.submit(place.credit, 1, identity=f"{place.number}/{n}") for n in range(12)]
        while len(place.sandbox.ledger(object=place.number)) < 12:
            assert not any(call.done() for call in stuck)
        place.sandbox.clear_faults()
        assert place.credit(2, identity=f"{place.number}/free").amount == 2
        assert not any(call.done() for call in stuck)
        for call in stuck:
            assert isinstance(call.exception(timeout=10), stripe.APIConnectionError)


@pytest.mark.parametrize(("mode", "effects"), [("execute_then_5xx", 1), ("5xx_without_effect", 0)])
def test_server_errors_say_nothing_about_the_effect(place: Place, mode: str, effects: int) -> None:
    _fault(place, mode, params={"status": 502})
    with pytest.raises(stripe.APIError) as failed:
        place.credit(500, identity=f"{place.number}/a")
    assert failed.value.http_status == 502
    assert len(place.effects(f"{place.number}/a")) == effects


def test_forced_refusals_have_no_effect(place: Place) -> None:
    for mode in ("same_key_running", "param_mismatch"):
        _fault(place, mode)
    with pytest.raises(stripe.APIError) as running:
        place.credit(500, identity=f"{place.number}/a")
    with pytest.raises(stripe.IdempotencyError) as mismatch:
        place.credit(500, identity=f"{place.number}/a")
    assert (running.value.http_status, mismatch.value.http_status) == (409, 400)
    assert place.effects(f"{place.number}/a") == []


def test_overload_asks_to_wait_in_every_form(place: Place) -> None:
    headers = {}
    for form in ("seconds", "date", "garbage", "none"):
        _fault(place, "overloaded", params={"retry_after": form, "seconds": 7})
        with pytest.raises(stripe.RateLimitError) as refused:
            place.credit(500, identity=f"{place.number}/a")
        headers[form] = refused.value.headers.get("Retry-After")
    assert headers["seconds"] == "7" and headers["none"] is None
    assert abs((parsedate_to_datetime(headers["date"]) - datetime.now(tz=UTC)).total_seconds()) < 60
    with pytest.raises(ValueError, match="invalid literal"):
        int(headers["garbage"])
    assert place.effects(f"{place.number}/a") == []


def test_a_slow_answer_comes_late_and_its_effect_even_after_the_caller_left(place: Place) -> None:
    _fault(place, "ok_slow", params={"seconds": 1.5, "effect_at": "end"})
    with pytest.raises(stripe.APIConnectionError):
        place.credit(500, identity=f"{place.number}/a", timeout=0.5)
    assert place.effects(f"{place.number}/a") == []
    deadline = time.monotonic() + 10
    while not place.effects(f"{place.number}/a") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(place.effects(f"{place.number}/a")) == 1


def test_an_early_effect_of_a_slow_answer_holds_its_key(place: Place) -> None:
    _fault(place, "ok_slow", params={"seconds": 1.5, "effect_at": "start"})
    with pytest.raises(stripe.APIConnectionError):
        place.credit(500, identity=f"{place.number}/a", timeout=0.3)
    assert len(place.effects(f"{place.number}/a")) == 1
    with pytest.raises(stripe.APIError) as running:
        place.credit(500, identity=f"{place.number}/a")
    assert running.value.http_status == 409
    deadline = time.monotonic() + 10
    while place.sandbox.requests(identity=f"{place.number}/a")[0]["status"] == "no answer":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert place.credit(500, identity=f"{place.number}/a").amount == 500
    assert len(place.effects(f"{place.number}/a")) == 1


def test_the_wrong_amount_and_the_wrong_account_are_really_recorded(place: Place) -> None:
    other = places.settle(place.sandbox)
    _fault(place, "wrong_amount", params={"amount_minor": 150_000})
    note = place.credit(120_000, identity=f"{place.number}/a")
    assert note.amount == 150_000
    assert [row["amount_minor"] for row in place.effects(f"{place.number}/a")] == [150_000]
    _fault(place, "wrong_account", params={"target": other.number})
    stray = place.credit(100, identity=f"{place.number}/b")
    assert (stray.customer, stray.invoice) == (other.customer, other.invoice)
    assert [row["objects"]["customer"] for row in place.effects(f"{place.number}/b")] == [other.customer]
    assert note.id in [found.id for found in place.billing().v1.credit_notes.list({"invoice": place.invoice}).data]
    assert stray.id not in [found.id for found in place.billing().v1.credit_notes.list({"invoice": place.invoice}).data]


def test_lookups_can_find_nothing_be_stale_or_fail(place: Place) -> None:
    note = place.credit(500, identity=f"{place.number}/a")
    v1 = place.billing().v1

    def found() -> list[str]:
        return [item.id for item in v1.credit_notes.list({"invoice": place.invoice}).data]

    match = {"invoice": place.number}
    place.sandbox.faults({"mode": "lookup_not_found", "operation": "billing.credit_notes.list", "match": match})
    assert found() == [] and found() == [note.id]
    place.sandbox.faults({"mode": "lookup_stale", "operation": "billing.*.list", "match": match})
    assert found() == [] and found() == [note.id]
    place.sandbox.faults({"mode": "lookup_error", "operation": "billing.credit_notes.*", "match": match})
    with pytest.raises(stripe.APIError) as failed:
        found()
    assert failed.value.http_status == 500 and found() == [note.id]
    place.sandbox.faults({"mode": "lookup_not_found", "match": {"credit_note": note.id}})
    with pytest.raises(stripe.InvalidRequestError) as missing:
        v1.credit_notes.retrieve(note.id)
    assert missing.value.http_status == 404 and v1.credit_notes.retrieve(note.id).id == note.id


def test_a_stale_read_shows_an_earlier_state(place: Place) -> None:
    time.sleep(0.6)
    place.credit(500, identity=f"{place.number}/a")
    spec = {"mode": "lookup_stale", "operation": "billing.invoices.retrieve", "params": {"seconds": 0.5}}
    place.sandbox.faults({**spec, "match": {"invoice": place.invoice}})
    v1 = place.billing().v1
    stale, fresh = v1.invoices.retrieve(place.invoice), v1.invoices.retrieve(place.invoice)
    assert (stale.amount_remaining, fresh.amount_remaining) == (1_200_000, 1_199_500)


def test_faults_queue_in_order_and_are_used_up(place: Place) -> None:
    for mode in ("ok", "5xx_without_effect", "reset_without_effect"):
        _fault(place, mode)
    assert place.credit(1, identity=f"{place.number}/a").amount == 1
    with pytest.raises(stripe.APIError):
        place.credit(1, identity=f"{place.number}/b")
    with pytest.raises(stripe.APIConnectionError):
        place.credit(1, identity=f"{place.number}/c")
    assert place.credit(1, identity=f"{place.number}/c").amount == 1
    assert [fault["used"] for fault in place.sandbox.listed_faults()] == [1, 1, 1]
    assert not any(fault["active"] for fault in place.sandbox.listed_faults())


def test_a_fault_keeps_to_its_match(place: Place) -> None:
    other = places.settle(place.sandbox)
    place.sandbox.faults(
        {"mode": "5xx_without_effect", "match": {"identity": f"{place.number}/bad"}, "times": None},
        {"mode": "5xx_without_effect", "operation": "helpdesk.*", "match": {"ticket": place.ticket}},
    )
    assert other.credit(1, identity=f"{other.number}/a").amount == 1
    assert place.credit(1, identity=f"{place.number}/good").amount == 1
    for epoch in range(3):
        with pytest.raises(stripe.APIError):
            place.credit(1, identity=f"{place.number}/bad", key=f"{place.number}:{epoch}")
    assert other.helpdesk("GET", f"tickets/{other.ticket}").status_code == 200
    assert place.helpdesk("GET", f"tickets/{place.ticket}").status_code == 500


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mode": "nonsense"}, "mode"),
        ({}, "mode"),
        ({"mode": "ok", "operation": "billing.nothing.*"}, "operation"),
        ({"mode": "lookup_stale", "operation": CREATE}, "operation"),
        ({"mode": "ok", "times": 0}, "times"),
        ({"mode": "ok", "match": {"colour": "red"}}, "match.colour"),
        ({"mode": "ok_slow", "params": {"seconds": "long"}}, "params.seconds"),
        ({"mode": "ok_slow", "params": {"effect_at": "middle"}}, "params.effect_at"),
        ({"mode": "execute_then_5xx", "params": {"status": 404}}, "params.status"),
        ({"mode": "ok", "params": {"seconds": 1}}, "params.seconds"),
        ({"mode": "ok", "until": "noon"}, "until"),
    ],
)
def test_a_wrong_fault_is_refused_by_field(place: Place, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(SandboxRefused) as refused:
        place.sandbox.faults(spec)
    assert (refused.value.status, refused.value.error["field"]) == (400, field)
    assert place.sandbox.listed_faults() == []


def test_modes_are_listed_with_what_a_page_needs(place: Place) -> None:
    listed = {mode["name"]: mode for mode in place.sandbox.modes()}
    assert len(listed) >= 25
    for mode in listed.values():
        assert mode["explanation"] and mode["operations"]
    assert listed["wrong_amount"]["operations"] == [CREATE]
    assert listed["execute_and_timeout"]["parameters"]["seconds"]["default"] == 30.0


def test_the_admin_page_shows_the_world_and_takes_faults(place: Place) -> None:
    place.credit(500, identity=f"{place.number}/<b>")
    url = place.sandbox.url
    page = requests.get(url, timeout=10)
    assert page.status_code == 200 and "style=" not in page.text and "<script" not in page.text
    assert place.number in page.text and "&lt;b&gt;" in page.text and "<b>" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    form = {"mode": "cut_body", "operation": CREATE, "times": "2", "match_name": "invoice", "match_value": place.number}
    requests.post(f"{url}/faults", data=form, timeout=10)
    [fault] = place.sandbox.listed_faults()
    assert (fault["mode"], fault["remaining"], fault["match"]) == ("cut_body", 2, {"invoice": place.number})
    wrong = requests.post(f"{url}/faults", data={"mode": "ok_slow", "params": "{"}, timeout=10)
    assert wrong.status_code == 400 and "Parameters are JSON" in wrong.text
    elsewhere = {"Origin": "https://elsewhere.example"}
    assert requests.post(f"{url}/faults/clear", headers=elsewhere, timeout=10).status_code == 403
    assert len(place.sandbox.listed_faults()) == 1
