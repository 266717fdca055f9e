"""The part of the HTTP API that proposes reversals. An integration proposes that what a run of its own did is undone,
with a token that may operate; people decide about it, and it is carried out in a run of its own."""

import uuid
from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from agentops.api.explaining import reversal_told
from agentops.api.operating import no_right
from agentops.api.schemas import Because, Problem, ReversalOut
from agentops.pages.reversal_words import refusal
from reconciliation.models import Operation
from reconciliation.services import reversals
from runs.models import Principal
from runs.rights import NO_RIGHT

router = Router(tags=["operating"])


@router.post(
    "/operations/{operation_id}/reversal",
    response={202: ReversalOut, 401: Problem, 403: Problem, 404: Problem, 409: Problem, 422: Problem},
    summary="Propose that an operation is undone",
)
def propose_reversal(request: HttpRequest, operation_id: uuid.UUID, body: Because) -> Status[Any]:
    """Of a run that this integration started. Nothing is undone until the policy, and the people whom it names, have
    approved it. Read the operation to see what became of it."""
    if refused := no_right(request):
        return refused
    caller: Principal = request.auth  # type: ignore[attr-defined]  # ninja sets it
    if not Operation.objects.filter(pk=operation_id, run__initiator=caller).exists():
        detail = "this integration has started no run with such an operation"
        return Status(404, {"code": "not_found", "detail": detail, "faults": []})
    result = reversals.propose(operation_id=operation_id, principal=caller, reason=body.reason)
    if result.ok and result.reversal is not None:
        return Status(202, reversal_told(reversal=result.reversal))
    said = refusal(code=result.code, detail=result.detail)
    return Status(403 if result.code == NO_RIGHT else 409, {"code": result.code, "detail": said, "faults": []})
