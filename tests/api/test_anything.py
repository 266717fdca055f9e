"""Whatever is thrown at the API, the answer is the caller's fault or a result, never ours, and it is JSON."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.models import ExternalEvent, Run
from tests.api.caller import Caller, deliver

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**15, max_value=10**25)
    | st.floats()
    | st.text(st.characters(), max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(["service_credit", "", "no_such"]) | ANYTHING
INPUTS = st.fixed_dictionaries({}, optional={"ticket": st.sampled_from(["CS-1", "CS-2"]) | ANYTHING, "more": ANYTHING})
BODIES = (
    st.fixed_dictionaries({}, optional={"workflow": NAMES, "input": INPUTS | ANYTHING, "extra": ANYTHING}) | ANYTHING
).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200)
HEADER_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=140)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["evt_1", "evt_2"]) | ANYTHING,
        "type": st.sampled_from(["invoice.updated", "credit_note.created"]) | ANYTHING,
        "data": ANYTHING | st.fixed_dictionaries({"object": ANYTHING}),
    },
)
MANY = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def judged(answer: Any) -> int:
    assert answer.status_code < 500, answer.content[:1000]
    assert answer.headers["Content-Type"].startswith("application/json")
    if answer.status_code >= 400:
        body = answer.json()
        assert body["code"] and body["detail"]
        assert all(set(one) == {"field", "message"} for one in body["faults"])
    return int(answer.status_code)


def test_any_body_and_key(desk: Caller) -> None:
    seen: set[int] = set()

    @MANY
    @given(body=BODIES, key=st.none() | st.sampled_from(["k1", "k2"]) | HEADER_TEXT)
    def throw(body: bytes, key: str | None) -> None:
        seen.add(judged(desk.start(body, key=key)))

    throw()
    assert {400, 422} <= seen
    assert judged(desk.start(b'{"workflow": "service_credit", "input": {"ticket": "CS-1"}}', key="last")) == 201
    assert set(Run.objects.values_list("workflow", flat=True)) == {"service_credit"}


def test_any_address(desk: Caller) -> None:
    seen: set[int] = set()

    @MANY
    @given(name=st.text(st.characters(exclude_characters="/?#\\"), min_size=1, max_size=50) | st.uuids().map(str))
    def throw(name: str) -> None:
        seen.add(judged(desk.read(name.encode("utf-8", "replace").hex() if "\ud800" <= name <= "\udfff" else name)))

    throw()
    assert 404 in seen


def test_any_event_well_signed_and_any_signature(db: str) -> None:
    seen: set[int] = set()

    @MANY
    @given(body=(EVENTS | ANYTHING).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=100))
    def signed(body: bytes) -> None:
        seen.add(judged(deliver(body)))

    @MANY
    @given(header=HEADER_TEXT)
    def unsigned(header: str) -> None:
        assert judged(deliver(b'{"id": "evt_u", "type": "t"}', signature=header or "x")) == 400

    signed()
    unsigned()
    assert {200, 400} <= seen and not ExternalEvent.objects.filter(event_id="evt_u").exists()
