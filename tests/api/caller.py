"""An integration that calls the HTTP API: whatever it sends, a server error is an answer here and not an exception."""

import hashlib
import hmac
import json
import time
from typing import Any

from django.conf import settings
from django.db import connections
from django.test import Client

RUNS = "/api/v1/runs"
EVENTS = "/api/v1/events/billing"


class Caller:
    def __init__(self, token: str | None) -> None:
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = Client(raise_request_exception=False)

    def start(self, body: Any, *, key: str | None = "k-1", **headers: str) -> Any:
        """POST a run; `body` is sent as it is when it is bytes, else as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {**self.headers, **({} if key is None else {"Idempotency-Key": key}), **headers}
        return self.client.post(RUNS, raw, content_type="application/json", headers=sent)

    def read(self, run_id: object) -> Any:
        return self.client.get(f"{RUNS}/{run_id}", headers=self.headers)


def ticket(number: str = "CS-8812") -> dict[str, Any]:
    return {"workflow": "service_credit", "input": {"ticket": number}}


def faults(answer: Any) -> dict[str, str]:
    """What the answer says is wrong, by field."""
    return {one["field"]: one["message"] for one in answer.json()["faults"]}


def event(event_id: str = "evt_1", kind: str = "invoice.updated", thing: Any = None) -> dict[str, Any]:
    return {"id": event_id, "object": "event", "type": kind, "data": {"object": {} if thing is None else thing}}


def sign(payload: bytes, *, at: int | None = None, secret: str | None = None) -> str:
    """Billing's signature header, by the published recipe and without its library."""
    moment = int(time.time()) if at is None else at
    used = settings.BILLING_WEBHOOK_SECRET if secret is None else secret
    return f"t={moment},v1={hmac.new(used.encode(), b'%d.' % moment + payload, hashlib.sha256).hexdigest()}"


def deliver(body: Any, *, signature: str | None = None) -> Any:
    """POST an event; signed well unless a `signature` is given."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    header = sign(raw) if signature is None else signature
    client = Client(raise_request_exception=False)
    return client.post(EVENTS, raw, content_type="application/json", headers={"Stripe-Signature": header})


def in_thread(job: Any) -> Any:
    """Run `job` in a pool's thread and give its database connection back."""
    try:
        return job()
    finally:
        connections.close_all()
