"""Events from billing: believed only with a good signature, stored once, and never more than a reason to look."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from approvals.models import ApprovalRequest
from runs.models import ExternalEvent
from tests.api.caller import deliver, event, faults, in_thread, sign

pytestmark = pytest.mark.usefixtures("db")


def test_a_signed_event_is_stored() -> None:
    answer = deliver(event("evt_1", thing={"customer": "cus_acme"}))
    assert (answer.status_code, answer.json()) == (200, {"received": True, "first": True})
    kept = ExternalEvent.objects.get()
    assert (kept.source, kept.event_id, kept.kind, kept.times_received) == ("billing", "evt_1", "invoice.updated", 1)
    assert kept.payload["data"] == {"object": {"customer": "cus_acme"}} and kept.processed_at is None


def test_what_is_not_billings_is_not_believed() -> None:
    raw = json.dumps(event()).encode()
    now = int(time.time())
    good = sign(raw)
    wrong = {
        "no header": "",
        "garbage": "garbage",
        "empty parts": ",,,",
        "no time": good.partition(",")[2],
        "no signature": good.partition(",")[0],
        "time not a number": good.replace(f"t={now}", "t=now"),
        "another secret": sign(raw, secret="whsec_other"),
        "empty secret": sign(raw, secret=""),
        "another body": sign(raw + b" "),
        "six minutes old": sign(raw, at=now - 360),
        "time moved up": sign(raw, at=now - 360).replace(str(now - 360), str(now)),
        "huge time": f"t={'9' * 5000},v1=00",
        "an older scheme": good.replace("v1=", "v0="),
        "not ASCII": f"t={now},v1=\u00e9\u00e9",
        "NUL": "\x00",
        "long": "v1=" + "0" * 9000,
    }
    for name, header in wrong.items():
        answer = deliver(raw, signature=header)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_signature"), (name, answer.content)
        assert list(faults(answer)) == ["Stripe-Signature"]
    assert not ExternalEvent.objects.exists()
    assert deliver(raw, signature=good).status_code == 200


def test_one_of_two_signatures_is_enough_while_a_secret_is_changed() -> None:
    raw = json.dumps(event()).encode()
    first = sign(raw, secret="whsec_old")
    assert deliver(raw, signature=f"{first},{sign(raw).partition(',')[2]}").status_code == 200


@pytest.mark.parametrize("secret", ["", "   "])
def test_without_a_secret_no_event_is_believed(settings: Any, secret: str) -> None:
    settings.BILLING_WEBHOOK_SECRET = secret
    raw = json.dumps(event()).encode()
    answer = deliver(raw, signature=sign(raw, secret=secret))
    assert answer.status_code == 503 and "BILLING_WEBHOOK_SECRET" in answer.json()["detail"]
    assert not ExternalEvent.objects.exists()


def test_a_good_signature_on_a_bad_body() -> None:
    wrong: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "body"),
        "not JSON": (b"<xml/>", "body"),
        "a list": (b"[1]", "body"),
        "a null": (b"null", "body"),
        "NaN": (b'{"id": "e", "type": "t", "data": NaN}', "body"),
        "deep": (b'{"a":' + b"[" * 90_000 + b"]" * 90_000 + b"}", "body"),
        "no id": (b'{"type": "t"}', "id"),
        "id null": (b'{"id": null, "type": "t"}', "id"),
        "id empty": (b'{"id": "", "type": "t"}', "id"),
        "id long": (json.dumps(event("e" * 201)).encode(), "id"),
        "no type": (b'{"id": "e"}', "type"),
        "type a list": (b'{"id": "e", "type": ["t"]}', "type"),
        "type long": (json.dumps(event(kind="t" * 101)).encode(), "type"),
    }
    for name, (raw, field) in wrong.items():
        answer = deliver(raw)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed"), (name, answer.content[:300])
        assert list(faults(answer)) == [field], name
    # the signature is over text, so bytes that are none cannot be signed
    assert deliver(b'{"id": "\xff"}').json()["code"] == "bad_signature"
    for raw in (b" " * 256_001, b" " * 5_000_000):
        answer = deliver(raw)
        assert (answer.status_code, list(faults(answer))) == (413, ["body"])
    assert not ExternalEvent.objects.exists()


BAD_AMOUNTS = ["-5", "0", "NaN", "Infinity", "1e2", "500.0", "1.5", "true", "null", "[]", str(10**15), "9" * 5000]
BAD_AMOUNTS += [json.dumps(text) for text in ("500", "1e2", "1_000", "٥٠٠", "500.50 JPY", "-5", "NaN", "")]


@pytest.mark.parametrize("amount", BAD_AMOUNTS, ids=lambda text: text[:12])
@pytest.mark.parametrize("kind", ["credit_note.created", "credit_note.updated", "credit_note.voided"])
def test_d15_a_credit_of_no_amount_is_no_event_of_billings(kind: str, amount: str) -> None:
    thing = '{"id": "cn_1", "currency": "jpy", "amount": %s}'
    raw = '{"id": "evt_1", "type": "%s", "data": {"object": %s}}'
    answer = deliver((raw % (kind, thing % amount)).encode())
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed"), answer.content
    read = amount not in ("NaN", "Infinity") and len(amount) < 5000
    assert list(faults(answer)) == ["data.object.amount" if read else "body"]
    assert not ExternalEvent.objects.exists() and not ApprovalRequest.objects.exists()


@pytest.mark.parametrize("currency", ["", "XXX", "US", "yen", "jp\u00a5", 7, None, ["jpy"]])
def test_d15_a_credit_in_no_currency_is_no_event_of_billings(currency: object) -> None:
    answer = deliver(event(kind="credit_note.created", thing={"amount": 500, "currency": currency}))
    assert (answer.status_code, list(faults(answer))) == (400, ["data.object.currency"])
    assert not ExternalEvent.objects.exists()


@pytest.mark.parametrize(
    ("amount", "currency"), [(500, "jpy"), (1000, "krw"), (1234, "kwd"), (1, "bhd"), (1000, "eur"), (10**15 - 1, "usd")]
)
def test_d15_amounts_of_every_exponent_are_taken_as_they_are(amount: int, currency: str) -> None:
    thing = {"amount": amount, "currency": currency}
    assert deliver(event(kind="credit_note.created", thing=thing)).status_code == 200
    assert ExternalEvent.objects.get().payload["data"]["object"] == thing


def test_texts_that_the_database_cannot_hold_stop_nothing() -> None:
    thing = {"customer": "a\x00b", "memo": "\ud800", "\x00": 1, "</td><script>": "\u202e" * 1000, "n": 10**100}
    assert deliver(event("evt\x00", thing=thing)).status_code == 200
    kept = ExternalEvent.objects.get()
    assert kept.event_id == "evt\ufffd" and kept.payload["data"]["object"]["customer"] == "a\ufffdb"


def test_the_same_event_counts_once_and_is_counted() -> None:
    answers = [deliver(event("evt_1", thing={"n": number})).json()["first"] for number in range(4)]
    assert answers == [True, False, False, False]
    kept = ExternalEvent.objects.get()
    assert kept.times_received == 4
    assert kept.payload["data"]["object"] == {"n": 0}  # what came first stays as it came


def test_five_deliveries_at_once_are_one() -> None:
    gate = threading.Barrier(5)

    def send() -> Any:
        gate.wait(10)
        return deliver(event("evt_5"))

    with ThreadPoolExecutor(5) as pool:
        answers = [one.result() for one in [pool.submit(in_thread, send) for _ in range(5)]]
    assert [one.status_code for one in answers] == [200] * 5
    assert sum(one.json()["first"] for one in answers) == 1
    assert ExternalEvent.objects.get().times_received == 5
