"""What is written on a ticket: comments, and drafts of replies that a person sends."""

from agentops.sandbox import fields, moments
from agentops.sandbox.helpdesk import tickets
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Call, Doc

_LONGEST = 20_000


def _store(*, tx: Transaction, kind: str, ticket: Doc, extra: Doc) -> Answer:
    doc: Doc = {
        "id": moments.new_id(prefix="cmt" if kind == "comment" else "drf"),
        "object": kind,
        "ticket": ticket["id"],
        "account": ticket["account"],
        "body": fields.needed(params=tx.call.params, name="body", longest=_LONGEST),
        "identity": tx.call.identity,
        "created_at": moments.iso(at=moments.now()),
        **extra,
    }
    tx.insert(kind=kind, doc=doc)
    tx.effect(objects={kind: doc["id"], "ticket": ticket["id"], "account": ticket["account"]})
    return Answer(status=201, body=visible(doc=doc))


def create_comment(tx: Transaction, call: Call) -> Answer:
    """POST /tickets/{ticket}/comments: ``body``, ``author``, ``public`` (false)."""
    fields.only(params=call.params, allowed=("body", "author", "public"))
    public = call.params.get("public", False)
    if not isinstance(public, bool):
        raise fields.refuse(param="public", message="public is true or false.")
    author = fields.text(params=call.params, name="author", longest=200)
    ticket = tickets.get(tx=tx, call=call)
    return _store(tx=tx, kind="comment", ticket=ticket, extra={"author": author, "public": public})


def create_draft(tx: Transaction, call: Call) -> Answer:
    """POST /tickets/{ticket}/drafts: ``body``, ``subject``. A draft is never sent by itself."""
    fields.only(params=call.params, allowed=("body", "subject"))
    ticket = tickets.get(tx=tx, call=call)
    subject = fields.text(params=call.params, name="subject", longest=500) or f"Re: {ticket['subject']}"
    return _store(tx=tx, kind="draft", ticket=ticket, extra={"subject": subject, "state": "draft"})


def comments(tx: Transaction, call: Call) -> Answer:
    """GET /tickets/{ticket}/comments, by ``identity``."""
    tickets.get(tx=tx, call=call)
    return tickets.listing(tx=tx, kind="comment", filters=("identity",), match={"ticket": call.ids["ticket"]})


def drafts(tx: Transaction, call: Call) -> Answer:
    """GET /tickets/{ticket}/drafts, by ``identity``."""
    tickets.get(tx=tx, call=call)
    return tickets.listing(tx=tx, kind="draft", filters=("identity",), match={"ticket": call.ids["ticket"]})
