"""The operator's part of the HTTP API: acts on runs, one or many, and freezes. For tokens that were made to operate.

An integration acts on the runs it started and on no others, and lifts only what it froze itself.
"""

import uuid
from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from agentops import acts, batches, switching
from agentops.api.schemas import (
    ActKey,
    BatchOut,
    Because,
    Done,
    FreezeOut,
    FreezeThis,
    OnMany,
    Problem,
)
from agentops.pages.operating import ACTS, sentence
from approvals import freezes
from approvals.models import Freeze
from approvals.services import freezing
from approvals.services.freezing import FreezeResult
from runs.models import Batch, BatchItem, Principal, Run
from runs.rights import NO_RIGHT

router = Router(tags=["operating"])
NOT_GRANTED = (
    "this token was not made to operate: an administrator makes one with manage.py make_token NAME --may-operate; "
    "nothing was done"
)
_LISTED = 500  # results in one answer
_REFUSALS = {200: Done, 401: Problem, 403: Problem, 404: Problem, 409: Problem, 422: Problem}


def _problem(code: str, detail: str) -> dict[str, Any]:
    return {"code": code, "detail": detail, "faults": []}


def _caller(request: HttpRequest) -> Principal:
    found: Principal = request.auth  # type: ignore[attr-defined]  # ninja sets it
    return found


def no_right(request: HttpRequest) -> Status[Any] | None:
    """The very token that was sent has to be one that may operate; its integration's other tokens do not count."""
    if getattr(request, "may_operate", False):
        return None
    return Status(403, _problem(NO_RIGHT, NOT_GRANTED))


@router.post("/runs/{run_id}/{act}", response=_REFUSALS, summary="Pause, resume, cancel, try again, or hand over a run")
def act_on_run(request: HttpRequest, run_id: uuid.UUID, act: ActKey, body: Because) -> Status[Any]:
    """For a run this integration started. `again` on an unknown outcome asks the other side; it never sends."""
    if refused := no_right(request):
        return refused
    if not Run.objects.filter(pk=run_id, initiator=_caller(request)).exists():
        return Status(404, _problem("not_found", "this integration has started no such run"))
    result = acts.perform(act=act, run_id=run_id, principal=_caller(request), reason=body.reason)
    if not result.ok:
        said = sentence(code=result.code, detail=result.detail)
        return Status(403 if result.code == NO_RIGHT else 409, _problem(result.code, said))
    return Status(200, {"code": "ok", "detail": ACTS[act].done})


@router.post("/batches", response={202: BatchOut, 401: Problem, 403: Problem, 409: Problem, 422: Problem})
def act_on_many(request: HttpRequest, body: OnMany) -> Status[Any]:
    """Write down an act on many runs this integration started; others are left out. The work is done afterwards."""
    if refused := no_right(request):
        return refused
    runs = Run.objects.filter(pk__in=body.runs, initiator=_caller(request), finished_at__isnull=True)
    started = batches.start(
        act=body.act, runs=runs, chosen="named by the caller", principal=_caller(request), reason=body.reason
    )
    if started.code == NO_RIGHT:
        return Status(403, _problem(NO_RIGHT, NOT_GRANTED))
    if started.batch is None:
        return Status(409, _problem(started.code, "none of these is a live run that this integration has started"))
    return Status(202, _told(started.batch))


@router.get("/batches/{batch_id}", response={200: BatchOut, 401: Problem, 404: Problem, 422: Problem})
def read_batch(request: HttpRequest, batch_id: uuid.UUID) -> Status[Any]:
    """How far it is, and the result of each run with its sentence."""
    found = Batch.objects.filter(pk=batch_id, principal=_caller(request)).first()
    if found is None:
        return Status(404, _problem("not_found", "this integration has asked for nothing of that id"))
    return Status(200, _told(found))


def _told(batch: Batch) -> dict[str, Any]:
    items = BatchItem.objects.filter(batch=batch, done_at__isnull=False)
    return {
        "id": batch.pk,
        "act": batch.act,
        "total": batch.total,
        "done": items.filter(code="ok").count(),
        "refused": items.exclude(code="ok").count(),
        "finished_at": batch.finished_at,
        "results": [
            {"run": one.run_id, "code": one.code, "detail": sentence(code=one.code, detail=one.detail)}
            for one in items.order_by("id")[:_LISTED]
        ],
    }


@router.get("/freezes", response={200: list[FreezeOut], 401: Problem}, summary="What is frozen now")
def list_freezes(request: HttpRequest) -> Status[Any]:
    """Any token may ask."""
    return Status(200, [_frozen(one) for one in freezes.current()])


@router.post("/freezes", response={201: FreezeOut, 401: Problem, 403: Problem, 409: Problem, 422: Problem})
def freeze(request: HttpRequest, body: FreezeThis) -> Status[Any]:
    """Freeze `all`, `workflow:NAME` or `tool:NAME`: nothing new is sent under it."""
    if refused := no_right(request):
        return refused
    if body.scope not in switching.scopes():
        return Status(422, _problem("unknown_scope", switching.say(code="unknown_scope", detail={})))
    return _answer(freezing.freeze(scope=body.scope, principal=_caller(request), reason=body.reason), status=201)


@router.post("/freezes/{freeze_id}/lift", response={**_REFUSALS, 200: FreezeOut})
def lift(request: HttpRequest, freeze_id: uuid.UUID, body: Because) -> Status[Any]:
    """End a freeze that this integration began."""
    if refused := no_right(request):
        return refused
    return _answer(freezing.lift(freeze_id=freeze_id, principal=_caller(request), reason=body.reason), status=200)


def _answer(result: FreezeResult, *, status: int) -> Status[Any]:
    if result.ok and result.freeze is not None:
        return Status(status, _frozen(result.freeze))
    refusals = {NO_RIGHT: 403, "not_yours": 403, "no_such_freeze": 404}
    said = switching.say(code=result.code, detail=result.detail)
    return Status(refusals.get(result.code, 409), _problem(result.code, said))


def _frozen(one: Freeze) -> dict[str, Any]:
    return {
        "id": one.pk,
        "scope": one.scope,
        "by": str(one.by),
        "reason": one.reason,
        "since": one.since,
        "lifted_at": one.lifted_at,
    }
