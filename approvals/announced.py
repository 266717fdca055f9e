"""What other systems are told of a request, and how it is signed."""

import hashlib
import hmac
import json
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.crypto import salted_hmac

from approvals import heard
from approvals.models import ApprovalRequest, Endpoint
from runs.models import Event
from runs.money import Money

HEADER = "Agentops-Signature"


def page_url(request: ApprovalRequest) -> str:
    """The decision page, which shows; a link changes nothing, however often it is fetched."""
    return settings.PUBLIC_URL + reverse("decision", args=[request.pk])


def amount_of(request: ApprovalRequest) -> Money | None:
    """The exact amount, from the proposal itself and never from a text."""
    proposal = request.proposal
    return None if proposal.amount_minor is None else Money(proposal.amount_minor, proposal.currency)


def body(*, event: Event, request: ApprovalRequest) -> str:
    """The JSON text, the same at every try: `id` names the event for good, `type` says what happened.

    Everything in it is fixed by the event: the request is as it was asked, its state is that of `type`.
    """
    money = amount_of(request)
    told: dict[str, Any] = {
        "id": f"{event.stream}:{event.seq}",
        "type": event.kind,
        "at": event.at.isoformat(),
        "installation": settings.INSTALLATION,
        "actor": {"kind": event.actor.kind, "label": event.actor.label},
        "why": event.data.get("why") or event.data.get("comment") or "",
        "decided_by": _decided_by(event, request),
        "run": {"id": str(request.run_id), "workflow": request.run.workflow, "subject": request.run.subject},
        "request": {
            "id": str(request.pk),
            "url": page_url(request),
            "ask": request.ask,
            "amount": None if money is None else {"minor": str(money.minor), "currency": money.currency},
            "customer": request.run.customer,
            "rows": request.page,
            "group": request.group,
            "quorum": request.quorum,
            "stages": [
                {"name": one.name, "groups": one.groups, "quorum": one.quorum, "in_turn": one.in_turn}
                for one in request.stages.filter(added_by__isnull=True).order_by("position")
            ],
            "policy": str(request.policy_version),
            "supersedes": None if request.supersedes_id is None else str(request.supersedes_id),
            "valid_until": request.valid_until.isoformat(),
        },
    }
    return json.dumps(told, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def _decided_by(event: Event, request: ApprovalRequest) -> list[str]:
    """The people whose answers made the decision, which may be others than who answered last, or the system that
    counted them again."""
    if event.kind not in ("request.approved", "request.rejected") or getattr(request, "decision", None) is None:
        return []
    return [vote.whose for vote in heard.deciders(request=request)]


def secret(endpoint: Endpoint) -> str:
    """What the endpoint's deliveries are signed with. Derived, so no table holds it."""
    keyed = salted_hmac("approvals.endpoint", f"{endpoint.pk}:{endpoint.nonce}", algorithm="sha256")
    return f"whsec_{keyed.hexdigest()}"


def signature(*, secret: str, body: bytes, at: int) -> str:
    """`t=<seconds>,v1=<hex>`: HMAC-SHA256 over the time, a full stop and the body's bytes, keyed by the secret."""
    signed = hmac.new(secret.encode(), str(at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"
