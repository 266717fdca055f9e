"""The HTTP API: start a run once, read it, receive signed events from billing; `operating` has the operator's part.
Nothing here approves anything."""

import re
import uuid
from typing import Any

import stripe
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Header, NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.docs import Swagger
from ninja.responses import Status
from ninja.security import HttpBearer

from agentops.api.asking import router as asking
from agentops.api.explaining import explained
from agentops.api.operating import router as operating
from agentops.api.parsing import MAX_BODY_BYTES, NotAcceptable, StrictParser, TooLarge, read_body, read_object
from agentops.api.schemas import (
    DisputeOut,
    ExplainedOut,
    OperationOut,
    Problem,
    Received,
    RunOut,
    RunStarted,
    SendSignal,
    SignalOut,
    StartRun,
)
from agentops.api.stages import newest
from agentops.api.standing import router as standing
from agentops.api.undoing import router as undoing
from agentops.busy import again, answer_to
from agentops.events import unfit_amount
from agentops.explain import found
from agentops.narrowing import BadTerms, Less
from agentops.starting import BadInput, checked_payload, start_workflow
from agentops.workflows.registry import UnknownWorkflow
from approvals import capabilities
from reconciliation.models import Operation
from reconciliation.queries import dispute_about
from runs.models import Principal, Run
from runs.services import external_events, signalling, tokens
from runs.services.runs import StartConflict
from runs.shape import in_words
from runs.texts import storable

KEY = re.compile(r"[\x21-\x7e]{1,128}")
MAX_EVENT_BYTES = 256_000


class Token(HttpBearer):
    """A token of an integration, as `Authorization: Bearer …`."""

    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:
        found = tokens.live(token=token)
        request.may_operate = found is not None and found.may_operate  # type: ignore[attr-defined]
        return None if found is None else found.principal


api = NinjaAPI(
    title="agentops",
    version="1",
    description="Start runs and read what became of them; with a token that may operate, pause, cancel, freeze and "
    "propose reversals. "
    "Approving is for people in the browser, never for a token.",
    auth=Token(),
    parser=StrictParser(),
    # without this the page asks a validator elsewhere about our schema
    docs=Swagger(settings={"validatorUrl": "none"}),
    urls_namespace="api",
)
api.add_router("", operating)
api.add_router("", asking)
api.add_router("", standing)
api.add_router("", undoing)


def _problem(code: str, detail: str, faults: list[dict[str, str]]) -> dict[str, Any]:
    return {"code": code, "detail": detail, "faults": faults}


def _fault(field: str, message: str) -> list[dict[str, str]]:
    return [{"field": field, "message": message}]


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, problem: ValidationError) -> HttpResponse:
    """Name each field and what is wrong with it."""
    faults = []
    for one in problem.errors:
        # ninja puts "body" and the parameter's name, or "header", before the path that the sender wrote
        path = one["loc"][2:] if one["loc"][0] == "body" else one["loc"][1:]
        faults.append({"field": ".".join(str(part) for part in path)[:200] or "body", "message": in_words(one)})
    detail = "; ".join(f"{one['field']}: {one['message']}" for one in faults)
    return api.create_response(request, _problem("invalid", detail, faults), status=422)


_CODES = {
    400: ("malformed", "body"),
    401: ("unauthorized", "Authorization"),
    413: ("too_large", "body"),
}


@api.exception_handler(HttpError)
def refused(request: HttpRequest, problem: HttpError) -> HttpResponse:
    """The same shape for what is wrong before any field is looked at."""
    if isinstance(problem.__cause__, HttpError):  # ninja hides what the parser said about the body
        problem = problem.__cause__
    code, field = _CODES.get(problem.status_code, ("refused", "request"))
    detail = str(problem)
    if problem.status_code == 401:
        detail = "give a token of an integration that is not revoked, as Authorization: Bearer ..."
    return api.create_response(request, _problem(code, detail, _fault(field, detail)), status=problem.status_code)


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def not_now(request: HttpRequest, problem: Exception) -> HttpResponse:
    """The database is busy or gone; any other trouble of it stays a server's error."""
    answer = again(request=request, problem=problem) or answer_to(request=request, problem=problem)
    if answer is None:
        raise problem
    return answer


@api.exception_handler(RequestDataTooBig)
def too_large(request: HttpRequest, problem: RequestDataTooBig) -> HttpResponse:
    """A body that Django itself would not hold."""
    return refused(request, HttpError(413, f"the body has more than {MAX_BODY_BYTES} bytes"))


def _started(run: Run) -> dict[str, Any]:
    return {
        "id": run.pk,
        "workflow": run.workflow,
        "workflow_version": run.workflow_version,
        "subject": run.subject,
        "created_at": run.created_at,
        "url": settings.PUBLIC_URL + reverse("api:run", kwargs={"run_id": run.pk}),
    }


def _less(body: StartRun) -> dict[str, Less] | None:
    if body.capabilities is None:
        return None
    return {tool: Less(only=one.only, when=one.when, until=one.until) for tool, one in body.capabilities.items()}


@api.post(
    "/runs",
    response={201: RunStarted, 400: Problem, 401: Problem, 413: Problem, 422: Problem},
    summary="Start a run, once per key",
)
def start_run(
    request: HttpRequest,
    response: HttpResponse,
    body: StartRun,
    idempotency_key: str = Header(..., alias="Idempotency-Key", description="1 to 128 visible ASCII characters"),
) -> Status[Any]:
    """The same key with the same body gives the same answer; with another body it is refused and nothing happens."""
    if not KEY.fullmatch(idempotency_key):
        detail = "use 1 to 128 visible ASCII characters"
        return Status(422, _problem("invalid", f"Idempotency-Key: {detail}", _fault("Idempotency-Key", detail)))
    initiator: Principal = request.auth  # type: ignore[attr-defined]  # ninja sets it
    try:
        started = start_workflow(
            name=body.workflow,
            data=body.input,
            initiator=initiator,
            start_key=f"api:{initiator.pk.hex}:{idempotency_key}",
            less=_less(body),
        )
    except UnknownWorkflow as problem:
        return Status(422, _problem("unknown_workflow", str(problem), _fault("workflow", str(problem))))
    except BadInput as problem:
        faults = [{"field": f"input.{one['field']}", "message": one["message"]} for one in problem.faults]
        return Status(422, _problem("invalid", str(problem), faults))
    except BadTerms as problem:
        return Status(422, _problem("invalid", str(problem), problem.faults))
    except StartConflict as problem:
        detail = f"parameters differ: this key was used before for run {problem.run.pk}; nothing was started"
        return Status(422, _problem("parameters_differ", detail, _fault("Idempotency-Key", detail)))
    if not started.created:
        response["Idempotent-Replayed"] = "true"
    return Status(201, _started(started.run))


_OUTCOMES = {"unknown": "not_confirmed", "accepted": "not_confirmed", "sending": "running", "authorised": "running"}


def _operation(operation: Operation) -> OperationOut:
    settled_as = _OUTCOMES.get(operation.state, operation.state)
    case = dispute_about(operation=operation)
    dispute = None
    if case is not None:
        dispute = DisputeOut(
            case=case.label,
            state="noted" if case.verdict else "open",
            our_record=settled_as,
            about=case.dispute,
        )
    return OperationOut(
        id=operation.pk,
        tool=operation.tool,
        identity=operation.identity,
        corrected=operation.corrected,
        outcome="in_dispute" if dispute else settled_as,
        reference=operation.external_reference,
        other_reference=operation.other_reference or None,
        amount_minor=None if operation.real_minor is None else str(operation.real_minor),
        sent_amount_minor=None if operation.amount_minor is None else str(operation.amount_minor),
        currency=operation.currency or None,
        settled_by=operation.settled_by or None,
        dispute=dispute,
        reversal=_reversal(operation),
    )


def _reversal(operation: Operation) -> Any:
    newest = max(operation.reversals.all(), key=lambda one: one.created_at, default=None)
    return None if newest is None else newest.result or "proposed"


@api.get(
    "/runs/{run_id}",
    response={200: RunOut, 401: Problem, 404: Problem, 422: Problem},
    summary="Read a run",
    url_name="run",
)
def read_run(request: HttpRequest, run_id: uuid.UUID) -> Status[Any]:
    """A run this integration started, with each operation's outcome. *Not confirmed* is not failed."""
    run = Run.objects.filter(pk=run_id, initiator=request.auth).first()  # type: ignore[attr-defined]  # ninja sets it
    if run is None:
        return Status(404, _problem("not_found", "this integration has started no such run", []))
    operations = Operation.objects.filter(run=run).order_by("created_at")
    operations = operations.prefetch_related("cases__resolved_by", "cases__confirmed_by", "reversals")
    return Status(
        200,
        {
            **_started(run),
            "title": run.title,
            "state": run.state,
            "state_label": run.get_state_display(),
            "is_over": run.is_over,
            "waits_for": run.waits_for,
            "outcome": run.outcome,
            "finished_at": run.finished_at,
            "approval": newest(run=run),
            "may": [{"tool": tool, "narrowed": words} for tool, words in capabilities.in_force(run=run)],
            "operations": [_operation(one) for one in operations],
        },
    )


@api.get(
    "/operations/{operation_id}",
    response={200: ExplainedOut, 401: Problem, 404: Problem, 422: Problem},
    summary="Read all there is about an operation",
    url_name="operation",
)
def read_operation(request: HttpRequest, operation_id: uuid.UUID) -> Status[Any]:
    """Meant, allowed, sent, answered, found, concluded, corrected: of a run that this integration started."""
    operation = found(operation_id=operation_id)
    if operation is None or operation.run.initiator_id != request.auth.pk:  # type: ignore[attr-defined]  # ninja sets it
        return Status(404, _problem("not_found", "this integration has started no run with such an operation", []))
    return Status(200, explained(operation=operation, known=_operation(operation)))


@api.post(
    "/runs/{run_id}/signals",
    response={202: SignalOut, 400: Problem, 401: Problem, 404: Problem, 413: Problem, 422: Problem, 503: Problem},
    summary="Tell a run something, once per key",
)
def send_signal(
    request: HttpRequest,
    run_id: uuid.UUID,
    body: SendSignal,
) -> Status[Any]:
    """For a run this integration started. Stored first: one that comes before the run waits for it is found then."""
    sender: Principal = request.auth  # type: ignore[attr-defined]  # ninja sets it
    run = Run.objects.filter(pk=run_id, initiator=sender).first()
    if run is None:
        return Status(404, _problem("not_found", "this integration has started no such run", []))
    try:
        payload = checked_payload(run=run, event=body.kind, payload=storable(body.payload))
    except BadInput as problem:
        return Status(422, _problem("invalid", str(problem), problem.faults))
    except UnknownWorkflow as problem:
        return Status(503, _problem("unknown_workflow", f"{problem}; nothing was stored, try again later", []))
    sent = signalling.send(run_id=run_id, key=body.key, kind=body.kind, payload=payload, sender=sender)
    if sent.code == "differs":
        detail = "parameters differ: this key was used before with another signal; nothing was stored"
        return Status(422, _problem("parameters_differ", detail, _fault("key", detail)))
    return Status(202, {"id": sent.signal.pk, "code": sent.code})


@api.post(
    "/events/billing",
    response={200: Received, 400: Problem, 413: Problem, 503: Problem},
    auth=None,
    summary="Receive a signed event from billing",
)
def billing_event(request: HttpRequest) -> Status[Any]:
    """Authenticated by its `Stripe-Signature`. Stored before it is answered; the same event id counts once."""
    secret = settings.BILLING_WEBHOOK_SECRET
    if not secret.strip():  # anybody can sign with an empty secret
        detail = "this installation has no BILLING_WEBHOOK_SECRET, so no event can be believed"
        return Status(503, _problem("not_configured", detail, []))
    header = request.headers.get("Stripe-Signature", "")
    try:
        payload = read_body(request, limit=MAX_EVENT_BYTES)
        stripe.WebhookSignature.verify_header(payload, header, secret, stripe.Webhook.DEFAULT_TOLERANCE)
    except TooLarge:
        detail = f"an event has at most {MAX_EVENT_BYTES} bytes"
        return Status(413, _problem("too_large", detail, _fault("body", detail)))
    except (ValueError, TypeError, OverflowError, stripe.SignatureVerificationError):
        detail = "the signature is missing, is not billing's for this body, or is too old"
        return Status(400, _problem("bad_signature", detail, _fault("Stripe-Signature", detail)))
    try:
        data = storable(read_object(payload))
    except NotAcceptable as problem:
        detail = f"the body {problem}"
        return Status(400, _problem("malformed", detail, _fault("body", detail)))
    for field, limit in (("id", 200), ("type", 100)):
        if not isinstance(data.get(field), str) or not 0 < len(data[field]) <= limit:
            detail = f"must be text of 1 to {limit} characters"
            return Status(400, _problem("malformed", f"{field}: {detail}", _fault(field, detail)))
    if fault := unfit_amount(kind=data["type"], payload=data):
        return Status(400, _problem("malformed", f"{fault[0]}: {fault[1]}", _fault(*fault)))
    first = external_events.receive(source="billing", event_id=data["id"], kind=data["type"], payload=data)
    return Status(200, {"received": True, "first": first})
