"""Idempotency keys: one effect per key, the first answer again, mismatch, running, forgotten."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import stripe

from tests.sandbox.places import Place


def test_the_same_key_and_parameters_replay_the_first_answer(place: Place) -> None:
    first = place.credit(500, identity=f"{place.number}/a")
    again = place.credit(500, identity=f"{place.number}/a")
    assert again.to_dict() == first.to_dict()
    assert again.last_response is not None and again.last_response.headers["Idempotent-Replayed"] == "true"
    assert len(place.effects(f"{place.number}/a")) == 1
    log = place.sandbox.requests(identity=f"{place.number}/a")
    assert [(entry["effect"], entry["replayed"]) for entry in log] == [(True, False), (False, True)]


def test_the_same_key_with_other_parameters_is_refused(place: Place) -> None:
    place.credit(500, identity=f"{place.number}/a")
    with pytest.raises(stripe.IdempotencyError) as refused:
        place.credit(501, identity=f"{place.number}/a")
    assert refused.value.http_status == 400
    assert [row["amount_minor"] for row in place.effects(f"{place.number}/a")] == [500]


def test_a_stored_500_is_replayed_and_a_new_key_works(place: Place) -> None:
    place.sandbox.faults({"mode": "5xx_without_effect", "operation": "billing.credit_notes.create"})
    for _ in range(2):
        with pytest.raises(stripe.APIError) as failed:
            place.credit(500, identity=f"{place.number}/a")
        assert failed.value.http_status == 500
    assert failed.value.headers["Idempotent-Replayed"] == "true"
    assert place.effects(f"{place.number}/a") == []
    place.credit(500, identity=f"{place.number}/a", key=f"{place.number}/a:1")
    assert len(place.effects(f"{place.number}/a")) == 1


def test_a_gateways_503_is_not_stored(place: Place) -> None:
    spec: Any = {"mode": "execute_then_5xx", "operation": "billing.credit_notes.create", "params": {"status": 503}}
    place.sandbox.faults(spec)
    with pytest.raises(stripe.APIError) as failed:
        place.credit(500, identity=f"{place.number}/a")
    assert failed.value.http_status == 503
    assert place.credit(500, identity=f"{place.number}/a").amount == 500
    assert len(place.effects(f"{place.number}/a")) == 1


def test_refused_parameters_are_not_stored_but_a_refusal_by_state_is(place: Place) -> None:
    key = f"{place.number}/a:0"
    with pytest.raises(stripe.InvalidRequestError):
        place.credit(0, identity=f"{place.number}/a", key=key)
    assert place.credit(500, identity=f"{place.number}/a", key=key).amount == 500
    for _ in range(2):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            place.credit(2_000_000, identity=f"{place.number}/b")
    assert refused.value.headers["Idempotent-Replayed"] == "true"


def test_a_key_in_use_is_409_and_answers_afterwards(place: Place) -> None:
    operation = "billing.credit_notes.create"
    place.sandbox.faults({"mode": "ok_slow", "operation": operation, "params": {"seconds": 1.5, "effect_at": "end"}})
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(place.credit, 500, identity=f"{place.number}/a")
        while not place.sandbox.requests(identity=f"{place.number}/a"):
            assert not slow.done()
        with pytest.raises(stripe.APIError) as refused:
            place.credit(500, identity=f"{place.number}/a")
        assert refused.value.http_status == 409
        assert place.effects(f"{place.number}/a") == []
        made = slow.result(timeout=120)
    assert place.credit(500, identity=f"{place.number}/a").id == made.id
    assert len(place.effects(f"{place.number}/a")) == 1


def test_many_callers_with_one_key_make_one_effect(place: Place) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        notes = list(pool.map(lambda _: place.credit(500, identity=f"{place.number}/a").id, range(16)))
    assert len(set(notes)) == 1 and len(place.effects(f"{place.number}/a")) == 1


@pytest.mark.parametrize("mode", ["keys_ignored", "key_forgotten_after"])
def test_a_key_that_does_not_protect_makes_a_second_effect(place: Place, mode: str) -> None:
    place.sandbox.faults({"mode": mode, "operation": "billing.credit_notes.create", "times": 2})
    first = place.credit(500, identity=f"{place.number}/a")
    second = place.credit(500, identity=f"{place.number}/a")
    assert first.id != second.id and len(place.effects(f"{place.number}/a")) == 2


def test_retention_is_a_setting(place: Place) -> None:
    try:
        place.sandbox.settings(key_retention_seconds=0)
        first = place.credit(500, identity=f"{place.number}/a")
        second = place.credit(500, identity=f"{place.number}/a")
    finally:
        settings = place.sandbox.settings(key_retention_seconds=86400)
    assert settings["key_retention_seconds"] == 86400
    assert first.id != second.id and len(place.effects(f"{place.number}/a")) == 2
