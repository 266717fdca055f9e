"""The literal table of the help desk's operations."""

from agentops.sandbox import fields, refusals
from agentops.sandbox.helpdesk import tickets, writing
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Call, Handler, Operation


def _reader(kind: str) -> Handler:
    """The handler that reads one document of a kind nobody edits here."""

    def retrieve(tx: Transaction, call: Call) -> Answer:
        fields.only(params=call.params, allowed=())
        doc = tx.find(kind=kind, id=call.ids[kind])
        if doc is None:
            raise refusals.missing(kind=kind, id=call.ids[kind])
        return Answer(body=visible(doc=doc), headers={"ETag": f'"{doc["version"]}"'})

    return retrieve


def _operation(name: str, method: str, path: str, handler: Handler, *traits: str) -> Operation:
    kind = {"any", "read"} if method == "GET" else {"any", "write"}
    return Operation(
        name=f"helpdesk.{name}",
        method=method,
        path=f"/helpdesk/v1/{path}",
        handler=handler,
        traits=frozenset({*kind, *traits}),
    )


OPERATIONS = (
    _operation("tickets.list", "GET", "tickets", tickets.listed, "list"),
    _operation("tickets.retrieve", "GET", "tickets/{ticket}", tickets.retrieve),
    _operation("tickets.update", "PATCH", "tickets/{ticket}", tickets.update, "account", "precondition"),
    _operation("tickets.changes", "GET", "tickets/{ticket}/changes", tickets.changes, "list"),
    _operation("comments.create", "POST", "tickets/{ticket}/comments", writing.create_comment, "account"),
    _operation("comments.list", "GET", "tickets/{ticket}/comments", writing.comments, "list"),
    _operation("drafts.create", "POST", "tickets/{ticket}/drafts", writing.create_draft, "account"),
    _operation("drafts.list", "GET", "tickets/{ticket}/drafts", writing.drafts, "list"),
    _operation("incidents.retrieve", "GET", "incidents/{incident}", _reader("incident")),
    _operation("accounts.retrieve", "GET", "accounts/{account}", _reader("account")),
    _operation("plans.retrieve", "GET", "plans/{plan}", _reader("plan")),
)
