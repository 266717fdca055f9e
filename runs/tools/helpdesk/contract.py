"""What the help desk's tools promise."""

import datetime as dt
from typing import Annotated, Literal

from pydantic import StringConstraints

from runs.money import Strict
from runs.tools.base import Contract, ForwardOnly, Repeat

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$")]
Version = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,17}$")]


class TicketEffect(Strict):
    ticket: Id
    ticket_version: Version  # the change is made to this version of the ticket or not at all
    status: Literal["open", "pending", "solved", "closed"]
    resolution: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class ReplyEffect(Strict):
    ticket: Id
    subject: Annotated[str, StringConstraints(min_length=1, max_length=150)]
    body: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


UPDATE_TICKET = Contract(
    name="helpdesk.update_ticket",
    version="1",
    system="helpdesk",
    title="Update ticket",
    effect=TicketEffect,
    repeat=Repeat.BY_IDENTITY,
    retention=dt.timedelta(hours=24),
    settling=dt.timedelta(seconds=2),
    call_limit=dt.timedelta(seconds=10),
    lookup_is_conclusive=True,
    precondition="The help desk itself refuses the change when the ticket is no longer at this version.",
    precondition_field="ticket_version",
    undo="Yes: anyone at the help desk can set the ticket back; its history keeps both changes.",
    touches="The ticket's status and resolution. The customer is told nothing.",
    business_key=lambda effect: f"ticket/{effect['ticket']}/{effect['ticket_version']}",
    reversal=ForwardOnly(why="A ticket is put right by a further change, never by taking one back."),
)

DRAFT_REPLY = Contract(
    name="helpdesk.draft_reply",
    version="1",
    system="helpdesk",
    title="Draft reply",
    effect=ReplyEffect,
    repeat=Repeat.BY_IDENTITY,
    retention=dt.timedelta(hours=24),
    settling=dt.timedelta(seconds=2),
    call_limit=dt.timedelta(seconds=10),
    lookup_is_conclusive=True,
    precondition="None: a draft changes nothing that is there already.",
    undo="Yes: a draft is deleted at the help desk. It is never sent by itself.",
    touches="Adds a draft to the ticket, which a person reads and sends.",
    business_key=lambda effect: f"reply/{effect['ticket']}/{effect['subject']}",
    reversal=ForwardOnly(why="A draft reaches nobody until a person sends it; who does not want it deletes it there."),
)
