"""The part of the HTTP API about requests for approval: what is asked and written, and the acts beside an answer.

An integration sees the requests of the runs it started. It comments, answers and withdraws; what is for those who are
asked is refused to every token, by the same services and with the same words as on the page.
"""

import uuid
from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from agentops import amounts
from agentops.api.operating import NOT_GRANTED
from agentops.api.schemas import Problem
from agentops.api.schemas_asking import Did, RequestAct, RequestOut, Verb
from approvals import talk, words
from approvals.announced import amount_of, page_url
from approvals.models import ApprovalRequest
from approvals.services import claiming, closing, talking
from approvals.services.acting import Acted
from runs.models import Principal

router = Router(tags=["asking"])
_FORBIDDEN = frozenset({"no_right", "not_yours", "may_not_see", "own_request", "own_question", "inactive"})
_TYPED = frozenset({"why_needed", "text_needed", "comment_too_long", "amount_unreadable", "no_question"})


def _problem(code: str, detail: str) -> dict[str, Any]:
    return {"code": code, "detail": detail, "faults": []}


def _found(request: HttpRequest, request_id: uuid.UUID) -> ApprovalRequest | None:
    caller = request.auth  # type: ignore[attr-defined]  # ninja sets it
    known = ApprovalRequest.objects.select_related("run", "proposal", "policy_version__policy")
    return known.filter(pk=request_id, run__initiator=caller).first()


_NONE = ("not_found", "this integration has started no run that asks this")


@router.get("/requests/{request_id}", response={200: RequestOut, 401: Problem, 404: Problem, 422: Problem})
def read_request(request: HttpRequest, request_id: uuid.UUID) -> Status[Any]:
    """What is asked, in which state it is, and what was written on it."""
    found = _found(request, request_id)
    if found is None:
        return Status(404, _problem(*_NONE))
    return Status(200, _told(found))


def _told(found: ApprovalRequest) -> dict[str, Any]:
    money = amount_of(found)
    return {
        "id": found.pk,
        "run": found.run_id,
        "ask": found.ask,
        "state": found.state,
        "amount_minor": None if money is None else str(money.minor),
        "currency": None if money is None else money.currency,
        "respond_by": found.respond_by,
        "approval_takes": found.confirm,
        "supersedes": found.supersedes_id,
        "waits_for_answer": bool(talk.open_questions(request=found)),
        "url": page_url(found),
        "remarks": [
            {
                "id": one.pk,
                "kind": one.kind,
                "by": str(one.author),
                "text": one.text,
                "asked_of": one.asked_of or None,
                "answers": one.answers_id,
                "at": one.at,
            }
            for one in talk.remarks(requests=ApprovalRequest.objects.filter(pk__in=talk.versions(requests=[found])))
        ],
    }


@router.post(
    "/requests/{request_id}/{verb}",
    response={200: Did, 401: Problem, 403: Problem, 404: Problem, 409: Problem, 422: Problem},
    summary="Comment on a request, answer a question on it, withdraw it",
)
def act_on_request(request: HttpRequest, request_id: uuid.UUID, verb: Verb, body: RequestAct) -> Status[Any]:
    """Withdrawing takes a token that may operate. `ask`, `claim`, `release`, `send-back` and `amount` are for people
    who are asked, so they are refused to a token; nobody approves or rejects here."""
    if _found(request, request_id) is None:
        return Status(404, _problem(*_NONE))
    if verb == "withdraw" and not getattr(request, "may_operate", False):
        return Status(403, _problem("no_right", NOT_GRANTED))
    result = _perform(verb, request_id, request.auth, body)  # type: ignore[attr-defined]  # ninja sets it
    if result.ok:
        return Status(200, {"code": "ok", "remark": result.detail.get("remark")})
    status = 403 if result.code in _FORBIDDEN else 422 if result.code in _TYPED else 409
    return Status(status, _problem(result.code, words.sentence(code=result.code, detail=result.detail)))


def _perform(verb: Verb, request_id: uuid.UUID, caller: Principal, body: RequestAct) -> Acted:
    given: dict[str, Any] = {"request_id": request_id, "principal": caller, "channel": "api"}
    match verb:
        case "comment":
            return talking.comment(**given, text=body.text)
        case "answer":
            return talking.answer(**given, text=body.text, question_id=body.question or uuid.UUID(int=0))
        case "withdraw":
            return closing.withdraw(**given, reason=body.text)
        case "ask":
            return talking.ask(**given, text=body.text, asked_of=body.asked_of)
        case "send-back":
            return closing.send_back(**given, reason=body.text)
        case "amount":
            return amounts.propose(**given, amount=body.amount, reason=body.text)
        case "claim":
            return claiming.claim(**given)
        case "release":
            return claiming.release(**given)
