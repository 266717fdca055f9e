"""The HTTP API: start a run once, read it, receive signed events from billing. Nothing here approves anything."""

import re
import uuid
from typing import Any

import stripe
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Header, NinjaAPI
from ninja.errors import ValidationError
from ninja.security import HttpBearer

from agentops.api.parsing import StrictParser
from agentops.api.schemas import OperationOut, Problem, Received, RunOut, RunStarted, StartRun
from agentops.starting import BadInput, start_workflow
from agentops.workflows.registry import UnknownWorkflow
from reconciliation.models import Operation
from runs.models import Principal, Run
from runs.services import external_events, tokens
from runs.services.runs import StartConflict

KEY = re.compile(r"[\x21-\x7e]{1,128}")
MAX_EVENT_BYTES = 256_000


class Token(HttpBearer):
    """A token of an integration, as `Authorization: Bearer …`."""

    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:
        return tokens.owner(token=token)


api = NinjaAPI(
    title="agentops",
    version="1",
    description="Start runs and read what became of them. Approving is for people in the browser, never for a token.",
    auth=Token(),
    parser=StrictParser(),
    urls_namespace="api",
)


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, problem: ValidationError) -> HttpResponse:
    """Name each field and what is wrong with it."""
    faults = [
        {"field": ".".join(str(part) for part in one["loc"][1:]) or "body", "message": one["msg"]}
        for one in problem.errors
    ]
    body = {"code": "invalid", "detail": "; ".join(f"{one['field']}: {one['message']}" for one in faults)}
    return api.create_response(request, {**body, "faults": faults}, status=422)


def _started(run: Run) -> dict[str, Any]:
    return {
        "id": run.pk,
        "workflow": run.workflow,
        "workflow_version": run.workflow_version,
        "title": run.title,
        "subject": run.subject,
        "created_at": run.created_at,
        "url": settings.PUBLIC_URL + reverse("api:run", kwargs={"run_id": run.pk}),
    }


@api.post("/runs", response={201: RunStarted, 400: Problem, 422: Problem}, summary="Start a run, once per key")
def start_run(
    request: HttpRequest,
    response: HttpResponse,
    body: StartRun,
    idempotency_key: str = Header(..., alias="Idempotency-Key", description="1 to 128 visible ASCII characters"),
) -> tuple[int, Any]:
    """The same key with the same body gives the same answer; with another body it is refused and nothing happens."""
    if not KEY.fullmatch(idempotency_key):
        fault = {"field": "Idempotency-Key", "message": "use 1 to 128 visible ASCII characters"}
        return 422, {"code": "invalid", "detail": f"{fault['field']}: {fault['message']}", "faults": [fault]}
    initiator: Principal = request.auth  # type: ignore[attr-defined]  # ninja sets it
    try:
        started = start_workflow(
            name=body.workflow,
            data=body.input,
            initiator=initiator,
            start_key=f"api:{initiator.pk.hex}:{idempotency_key}",
        )
    except UnknownWorkflow as problem:
        return 422, _problem("unknown_workflow", str(problem), [{"field": "workflow", "message": str(problem)}])
    except BadInput as problem:
        faults = [{"field": f"input.{one['field']}", "message": one["message"]} for one in problem.faults]
        return 422, _problem("invalid", str(problem), faults)
    except StartConflict as problem:
        detail = f"parameters differ: this key was used before for run {problem.run.pk}; nothing was started"
        return 422, _problem("parameters_differ", detail, [{"field": "Idempotency-Key", "message": detail}])
    if not started.created:
        response["Idempotent-Replayed"] = "true"
    return 201, _started(started.run)


def _problem(code: str, detail: str, faults: list[dict[str, str]]) -> dict[str, Any]:
    return {"code": code, "detail": detail, "faults": faults}


_OUTCOMES = {"unknown": "not_confirmed", "accepted": "not_confirmed", "sending": "running", "authorised": "running"}


@api.get("/runs/{run_id}", response={200: RunOut, 404: Problem}, summary="Read a run", url_name="run")
def read_run(request: HttpRequest, run_id: uuid.UUID) -> tuple[int, Any]:
    """A run this integration started, with each operation's outcome. *Not confirmed* is not failed."""
    run = Run.objects.filter(pk=run_id, initiator=request.auth).first()  # type: ignore[attr-defined]  # ninja sets it
    if run is None:
        return 404, _problem("not_found", "this integration has started no such run", [])
    operations = Operation.objects.filter(run=run).order_by("created_at")
    return 200, {
        **_started(run),
        "state": run.state,
        "state_label": run.get_state_display(),
        "is_over": run.is_over,
        "waits_for": run.waits_for,
        "outcome": run.outcome,
        "finished_at": run.finished_at,
        "operations": [
            OperationOut(
                tool=one.tool,
                identity=one.identity,
                outcome=_OUTCOMES.get(one.state, one.state),
                reference=one.external_reference,
                amount_minor=None if one.amount_minor is None else str(one.amount_minor),
                currency=one.currency or None,
            )
            for one in operations
        ],
    }


@api.post(
    "/events/billing",
    response={200: Received, 400: Problem, 413: Problem},
    auth=None,
    summary="Receive a signed event from billing",
)
def billing_event(request: HttpRequest) -> tuple[int, Any]:
    """Authenticated by its `Stripe-Signature`. Stored before it is answered; the same event id counts once."""
    if int(request.headers.get("Content-Length") or 0) > MAX_EVENT_BYTES:
        return 413, _problem("too_large", f"an event has at most {MAX_EVENT_BYTES} bytes", [])
    payload = request.body
    try:
        event = stripe.Webhook.construct_event(  # type: ignore[no-untyped-call]  # the library's own gap
            payload, request.headers.get("Stripe-Signature", ""), settings.BILLING_WEBHOOK_SECRET
        )
        data: dict[str, Any] = event.to_dict()
    except (ValueError, stripe.SignatureVerificationError, AttributeError, TypeError):
        return 400, _problem("bad_signature", "the signature or the body is not one of billing's", [])
    event_id, kind = data.get("id"), data.get("type")
    if not isinstance(event_id, str) or not isinstance(kind, str) or not 0 < len(event_id) <= 200:
        return 400, _problem("malformed", "an event has an id and a type", [])
    return 200, {
        "received": True,
        "first": external_events.receive(source="billing", event_id=event_id, kind=kind, payload=data),
    }
