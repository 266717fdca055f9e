"""Writing on a request: comments, questions to those who ask, answers. Each is one durable transaction, kept for good.

Whoever may see a request may write on it. A question stops nothing: the time to answer the request runs on, its place
stays, and whoever is asked may decide at any time.
"""

import uuid
from typing import Any

from approvals import objections, talk
from approvals.models import Remark
from approvals.objections import Objection
from approvals.services import acting
from approvals.services.acting import Acted, Channel, Hand
from runs import record, rights, transitions
from runs.models import Principal

SEE = "approvals.view_approvalrequest"
_EVENTS = {"comment": "request.commented", "question": "request.question", "answer": "request.answered"}


def comment(*, request_id: uuid.UUID, principal: Principal, text: str, channel: Channel) -> Acted:
    """Say something, also about a request that is closed. Refusals: inactive, may_not_see, text_needed,
    comment_too_long, too_many. Raises ApprovalRequest.DoesNotExist."""
    return acting.carry_out(
        act="comment",
        request_id=request_id,
        principal=principal,
        text=text,
        channel=channel,
        checks=(_sees, _written, _room),
        inner=lambda hand: _keep(hand, Remark.Kind.COMMENT, channel),
    )


def ask(*, request_id: uuid.UUID, principal: Principal, text: str, asked_of: str, channel: Channel) -> Acted:
    """Ask for information, as somebody who may decide. `asked_of` is requester or support.

    Refusals: those of a closed request, inactive, no_right, own_request, text_needed, comment_too_long, too_many.
    Raises ValueError for another `asked_of`.
    """
    if asked_of not in Remark.Of.values:
        raise ValueError("asked_of: write requester or support")
    return acting.carry_out(
        act="ask",
        request_id=request_id,
        principal=principal,
        text=text,
        channel=channel,
        checks=(acting.undecided, acting.asked, _written, _room),
        inner=lambda hand: _keep(hand, Remark.Kind.QUESTION, channel, asked_of=asked_of),
    )


def answer(
    *, request_id: uuid.UUID, principal: Principal, question_id: uuid.UUID, text: str, channel: Channel
) -> Acted:
    """Answer a question, once. Anybody who may see the request may, but whoever asked it.

    Refusals: those of a closed request, inactive, may_not_see, no_question, own_question, answered, text_needed,
    comment_too_long, too_many.
    """

    def waits(hand: Hand) -> Objection | None:
        question = _question(hand, question_id)
        if question is None:
            return Objection(code="no_question")
        if question.author_id == hand.principal.pk:
            return Objection(code="own_question")
        given = Remark.objects.filter(answers=question).select_related("author").first()
        return None if given is None else Objection(code="answered", detail={"by": str(given.author)})

    return acting.carry_out(
        act="answer",
        request_id=request_id,
        principal=principal,
        text=text,
        channel=channel,
        checks=(acting.undecided, _sees, waits, _written, _room),
        inner=lambda hand: _keep(hand, Remark.Kind.ANSWER, channel, answers=_question(hand, question_id)),
    )


def _question(hand: Hand, question_id: uuid.UUID) -> Remark | None:
    asked = Remark.objects.filter(kind=Remark.Kind.QUESTION, request__in=list(talk.versions(requests=[hand.request])))
    return asked.filter(pk=question_id).first()


def _sees(hand: Hand) -> Objection | None:
    """A person with the right to see requests; of the machines, the integration that raised it."""
    if hand.principal.user_id is None:
        return None if hand.principal.pk == hand.run.initiator_id else Objection(code="may_not_see")
    if rights.entitled(principal=hand.principal, permission=SEE):
        return None
    user = hand.user
    return Objection(code="may_not_see") if user.is_active else objections.entitled_now(request=hand.request, user=user)


def _written(hand: Hand) -> Objection | None:
    found = acting.with_reason(hand)
    return Objection(code="text_needed") if found is not None and found.code == "why_needed" else found


def _room(hand: Hand) -> Objection | None:
    full = Remark.objects.filter(request=hand.request).count() >= talk.SHOWN
    return Objection(code="too_many", detail={"limit": talk.SHOWN}) if full else None


def _keep(hand: Hand, kind: Remark.Kind, channel: str, **fields: Any) -> dict[str, Any]:
    remark = Remark.objects.create(
        request=hand.request,
        kind=kind,
        author=hand.principal,
        text=hand.text,
        channel=channel,
        at=hand.now,
        **fields,
    )
    about = {"asked_of": remark.asked_of} if remark.asked_of else {}
    if remark.answers_id is not None:
        about["question"] = str(remark.answers_id)
    record.append(
        run=hand.run,
        kind=_EVENTS[kind],
        actor=hand.principal,
        request=str(hand.request.pk),
        remark=str(remark.pk),
        comment=hand.text,
        channel=channel,
        **about,
    )
    if kind != Remark.Kind.COMMENT and hand.request.closed_at is None:
        transitions.wake(run=hand.run)  # it says anew what it waits for
    return {"remark": str(remark.pk)}
