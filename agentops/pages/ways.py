"""What can be done with a request beside answering it: the thread on it, questions, a claim, and the ways to end it
without a decision. Which are open to the reader, and carrying one out as it was posted."""

import uuid
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest

from agentops import amounts
from agentops.pages import chain
from approvals import objections, seating, talk
from approvals.models import ApprovalRequest, Remark
from approvals.models.request import RequestState
from approvals.seating import Seating
from approvals.services import claiming, closing, talking
from approvals.services.acting import Acted
from runs import clock, holding
from runs.services import principals


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """`does` is the consequence, `done` what is said afterwards; one with a dialog has a `title` and a `label`."""

    key: str
    button: str
    done: str
    title: str = ""
    does: str = ""
    label: str = "Why"
    opens: str = ""


WAYS = {
    one.key: one
    for one in (
        Way(key="comment", button="Add comment", done="Your comment is on the request."),
        Way(key="answer", button="Answer", done="Your answer is on the request."),
        Way(key="claim", button="I am looking at this", done="Others see that you are looking at this."),
        Way(key="release", button="Give it back", done="Given back. Others see that nobody is looking at it."),
        Way(
            key="ask",
            opens="Ask for information",
            button="Ask",
            done="Asked. The request waits for the answer, and keeps its place.",
            title="Ask for information",
            does="Whoever is asked is told and answers on this page. The time to answer the request runs on, it keeps "
            "its place, and you may decide before the answer comes.",
            label="What do you need to know?",
        ),
        Way(
            key="amount",
            opens="Another amount",
            button="Propose it",
            done="Proposed. It goes through policy as a new request, which somebody else decides.",
            title="Propose another amount",
            does="This closes the request. The new amount goes through policy again; where it asks people, somebody "
            "else than you decides, and sees both amounts.",
        ),
        Way(
            key="send_back",
            opens="Send back",
            button="Send it back",
            done="Sent back. Nothing was sent.",
            title="Send it back",
            does="This closes the request without a decision, and nothing is sent. The agent hears why and may propose "
            "anew, or a person takes over.",
        ),
        Way(
            key="withdraw",
            opens="Withdraw",
            button="Withdraw it",
            done="Withdrawn. Nothing was sent; the run waits for a person.",
            title="Withdraw it",
            does="This closes the request without a decision, and nothing is sent. A person decides how the run goes "
            "on.",
        ),
    )
}


def perform(request: HttpRequest, *, ask: ApprovalRequest, key: str) -> Acted:
    """What the posted form asks for, as the signed-in person. `key` is one of WAYS."""
    who = principals.of_user(user=cast(User, request.user))
    given: dict[str, Any] = {"request_id": ask.pk, "principal": who, "channel": "page"}
    text = request.POST.get("text", "")
    match key:
        case "comment":
            return talking.comment(**given, text=text)
        case "ask":
            asked_of = request.POST.get("asked_of", "")
            known = asked_of if asked_of in Remark.Of.values else Remark.Of.SUPPORT.value
            return talking.ask(**given, text=text, asked_of=known)
        case "answer":
            return talking.answer(**given, text=text, question_id=_question(request))
        case "claim":
            return claiming.claim(**given)
        case "release":
            return claiming.release(**given)
        case "amount":
            return amounts.propose(**given, amount=request.POST.get("amount", ""), reason=text)
        case "send_back":
            return closing.send_back(**given, reason=text)
        case _:
            return closing.withdraw(**given, reason=text)


def _question(request: HttpRequest) -> uuid.UUID:
    return _id(request.POST.get("question", "")) or uuid.UUID(int=0)


def _id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def question(*, ask: ApprovalRequest, asked: str) -> Remark | None:
    """The question that is to be answered, if it waits for an answer still."""
    wanted = _id(asked)
    return next((one for one in talk.open_questions(request=ask) if one.pk == wanted), None)


def context(*, user: User, ask: ApprovalRequest, seen: Seating) -> dict[str, Any]:
    """The thread, and the ways that are open to the reader; `seen` is how the reader finds the request."""
    undecided = objections.closed(request=ask, run=ask.run, user=user, now=clock.now()) is None
    asked = undecided and _may_answer(user, ask, seen)
    open_ways = []
    if asked:
        open_ways += ["ask", *(["amount"] if amounts.can(run=ask.run, proposal=ask.proposal) else []), "send_back"]
    if undecided and (user.has_perm(holding.OPERATE) or ask.run.initiator.user_id == user.pk):
        open_ways.append("withdraw")
    return {
        "ways": [WAYS[key] for key in open_ways],
        "requester": ask.run.initiator.label,
        "same_count": same_count(ask=ask),
        **thread(user=user, ask=ask, asked=asked, undecided=undecided),
    }


def _may_answer(user: User, ask: ApprovalRequest, seen: Seating | None = None) -> bool:
    seen = seating.of(request=ask, user=user) if seen is None else seen
    return not (objections.entitlement(seating=seen) or objections.involvement(run=ask.run, user=user))


def thread(
    *, user: User, ask: ApprovalRequest, asked: bool | None = None, undecided: bool | None = None
) -> dict[str, Any]:
    """All that was written on the request and the ones it replaced, and who is looking at it now."""
    now = clock.now()
    if undecided is None:
        undecided = objections.closed(request=ask, run=ask.run, user=user, now=now) is None
    if asked is None:
        asked = undecided and _may_answer(user, ask)
    written = talk.remarks(requests=chain.versions(request=ask))
    held = talk.holder(request=ask, now=now)
    answered = {one.answers_id for one in written if one.answers_id is not None}
    entries = [
        {
            "remark": one,
            "waits": undecided and one.kind == Remark.Kind.QUESTION and one.pk not in answered,
            "mine": one.author.user_id == user.pk,
            "earlier": one.request_id != ask.pk,
        }
        for one in written
    ]
    mine = held is not None and held.principal.user_id == user.pk
    waiting = sum(bool(one["waits"]) for one in entries)
    return {
        "ask": ask,
        "thread": entries,
        "waiting": waiting,
        "claim": held,
        "claim_mine": mine,
        "may_claim": asked and held is None,
        "thread_version": f"{len(entries)}.{waiting}.{held.principal_id if held else ''}.{undecided:d}",
    }


def same_count(*, ask: ApprovalRequest) -> int:
    """How many other open requests ask for exactly the same effect. Each needs its own approval."""
    if ask.state != RequestState.OPEN:
        return 0
    same = ApprovalRequest.objects.filter(action_digest=ask.action_digest, state=RequestState.OPEN)
    return same.exclude(pk=ask.pk).count()
