"""What goes in and out of the HTTP API about requests for approval."""

import datetime as dt
import uuid
from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, StrictStr

Verb = Literal["comment", "answer", "withdraw", "ask", "send-back", "amount", "claim", "release"]
AskedOf = Literal["requester", "support"]


class RequestAct(Schema):
    """`text` is the comment, the question, the answer or the reason; `question` names what is answered; `amount` is
    digits with a point, in the request's currency."""

    model_config = ConfigDict(extra="forbid")
    text: Annotated[StrictStr, Field(max_length=4000)] = ""
    question: uuid.UUID | None = None
    amount: Annotated[StrictStr, Field(max_length=40)] = ""
    asked_of: AskedOf = "support"


class Did(Schema):
    """`remark` is what was written, where something was."""

    code: str
    remark: uuid.UUID | None = None


class RemarkOut(Schema):
    """`kind` is comment, question or answer; `answers` is the question's id."""

    id: uuid.UUID
    kind: str
    by: str
    text: str
    asked_of: str | None
    answers: uuid.UUID | None
    at: dt.datetime


class RequestOut(Schema):
    """`state` is open, approved, rejected, expired, superseded, withdrawn, sent_back, spent, stale or revoked;
    `approval_takes` is click, retype or reauthenticate."""

    id: uuid.UUID
    run: uuid.UUID
    ask: str
    state: str
    amount_minor: str | None
    currency: str | None
    respond_by: dt.datetime
    approval_takes: str
    supersedes: uuid.UUID | None
    waits_for_answer: bool
    url: str
    remarks: list[RemarkOut]
