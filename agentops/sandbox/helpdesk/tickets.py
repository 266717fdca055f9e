"""Tickets: read, list, change under a version."""

from typing import Any

from agentops.sandbox import fields, moments, refusals
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Call, Doc, Refusal

STATUSES = ("open", "pending", "solved", "closed")
PRIORITIES = ("low", "normal", "high", "urgent")
_EDITABLE = ("status", "priority", "assignee", "resolution", "tags", "fields")


def blank(*, id: str, account: str, subject: str) -> Doc:
    """A new open ticket."""
    now = moments.iso(at=moments.now())
    return {
        "id": id,
        "object": "ticket",
        "account": account,
        "assignee": None,
        "body": "",
        "created_at": now,
        "fields": {},
        "incident": None,
        "messages": [],
        "priority": "normal",
        "resolution": None,
        "status": "open",
        "subject": subject,
        "tags": [],
        "updated_at": now,
        "version": 1,
    }


def get(*, tx: Transaction, call: Call) -> Doc:
    """The ticket the path names. Raises Refusal (404) when there is none."""
    ticket = tx.find(kind="ticket", id=call.ids["ticket"])
    if ticket is None:
        raise refusals.missing(kind="ticket", id=call.ids["ticket"])
    return ticket


def listing(*, tx: Transaction, kind: str, filters: tuple[str, ...], match: dict[str, Any]) -> Answer:
    """One page, newest first: ``{"object": "list", "data": […], "has_more": …, "url": …}``; limit 1 to 100 (20)."""
    params = tx.call.params
    fields.only(params=params, allowed=(*filters, "limit", "starting_after"))
    given = {name: fields.text(params=params, name=name) for name in filters}
    docs, more = tx.page(
        kind=kind,
        match={**match, **{name: value for name, value in given.items() if value is not None}},
        limit=fields.integer(params=params, name="limit", low=1, high=100, default=20),
        after=fields.text(params=params, name="starting_after"),
    )
    data = [visible(doc=doc) for doc in docs]
    return Answer(body={"object": "list", "data": data, "has_more": more, "url": tx.call.path})


def retrieve(tx: Transaction, call: Call) -> Answer:
    """GET /tickets/{ticket}; the ETag is the version."""
    fields.only(params=call.params, allowed=())
    return _shown(ticket=get(tx=tx, call=call))


def listed(tx: Transaction, call: Call) -> Answer:
    """GET /tickets, by account, status and incident."""
    return listing(tx=tx, kind="ticket", filters=("account", "status", "incident"), match={})


def _shown(*, ticket: Doc) -> Answer:
    return Answer(body=visible(doc=ticket), headers={"ETag": f'"{ticket["version"]}"'})


def update(tx: Transaction, call: Call) -> Answer:
    """PATCH /tickets/{ticket} with ``If-Match: <version>``: 428 without it, 412 when the version has moved."""
    fields.only(params=call.params, allowed=_EDITABLE)
    if not call.params:
        raise fields.refuse(param="body", message=f"Nothing to change: give one of {', '.join(_EDITABLE)}.")
    expected = call.headers.get("if-match", "").strip().removeprefix("W/").strip('"')
    if not expected.isdecimal():
        message = "Send 'If-Match: <version>' with the version of the ticket that this change is based on."
        raise Refusal(status=428, code="version_required", param="If-Match", message=message)
    ticket = get(tx=tx, call=call)
    if int(expected[:18]) != ticket["version"]:
        message = (
            f"The ticket is at version {ticket['version']} now, not {expected[:18]}. Read it again and decide again."
        )
        extra = {"current_version": ticket["version"]}
        raise Refusal(status=412, code="version_moved", param="If-Match", message=message, stored=True, extra=extra)
    changed = _change(ticket=ticket, params=call.params)
    change = _record(tx=tx, ticket=ticket, changed=changed)
    tx.replace(kind="ticket", doc=ticket)
    tx.effect(
        objects={"ticket": ticket["id"], "account": ticket["account"], "change": change["id"]},
        payload={"changes": changed, "version": ticket["version"]},
    )
    return _shown(ticket=ticket)


def _change(*, ticket: Doc, params: Doc) -> Doc:
    """Apply the new values; returns ``{field: [old, new]}`` of those that differ."""
    new: Doc = {}
    for name, options in (("status", STATUSES), ("priority", PRIORITIES)):
        value = fields.choice(params=params, name=name, options=options)
        if value is not None:
            new[name] = value
    for name in ("assignee", "resolution"):
        if name in params:
            new[name] = fields.text(params=params, name=name, longest=20_000)
    if "tags" in params:
        tags = params["tags"]
        if not isinstance(tags, list) or len(tags) > 50 or not all(isinstance(tag, str) for tag in tags):
            raise fields.refuse(param="tags", message="tags is a list of at most 50 texts.")
        new["tags"] = tags
    if "fields" in params:
        extra = fields.group(params=params, name="fields")
        if len(extra) > 50 or not all(isinstance(value, str | int | bool | None) for value in extra.values()):
            raise fields.refuse(
                param="fields", message="fields takes at most 50 names with text, whole numbers or flags."
            )
        new["fields"] = {**ticket["fields"], **extra}
    changed = {name: [ticket[name], value] for name, value in new.items() if ticket[name] != value}
    ticket.update(new)
    return changed


def _record(*, tx: Transaction, ticket: Doc, changed: Doc) -> Doc:
    ticket["version"] += 1
    ticket["updated_at"] = moments.iso(at=moments.now())
    change = {
        "id": moments.new_id(prefix="chg"),
        "object": "change",
        "ticket": ticket["id"],
        "identity": tx.call.identity,
        "from_version": ticket["version"] - 1,
        "to_version": ticket["version"],
        "changes": changed,
        "at": ticket["updated_at"],
    }
    tx.insert(kind="change", doc=change)
    return change


def changes(tx: Transaction, call: Call) -> Answer:
    """GET /tickets/{ticket}/changes, by ``identity``."""
    get(tx=tx, call=call)
    return listing(tx=tx, kind="change", filters=("identity",), match={"ticket": call.ids["ticket"]})
