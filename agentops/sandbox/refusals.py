"""Error answers in the shape of each system."""

from agentops.sandbox import moments
from agentops.sandbox.wire import Answer, Doc, Refusal


def answer(*, system: str, refusal: Refusal) -> Answer:
    """The HTTP answer for a refusal of ``billing``, ``helpdesk`` or ``sandbox``."""
    body = _stripe(refusal=refusal) if system == "billing" else _plain(refusal=refusal)
    headers = dict(refusal.headers)
    if system == "billing":
        headers["Request-Id"] = moments.new_id(prefix="req")
    return Answer(status=refusal.status, body=body, headers=headers)


def _stripe(*, refusal: Refusal) -> Doc:
    if refusal.status >= 500:
        kind = "api_error"
    elif refusal.code.startswith("idempotency"):
        kind = "idempotency_error"
    else:
        kind = "invalid_request_error"
    error: Doc = {"type": kind, "message": refusal.message, **refusal.extra}
    if refusal.code not in ("api_error", "idempotency_error"):
        error["code"] = refusal.code
    if refusal.param:
        error["param"] = refusal.param
    return {"error": error}


def _plain(*, refusal: Refusal) -> Doc:
    error: Doc = {"code": refusal.code, "message": refusal.message, **refusal.extra}
    if refusal.param:
        error["field"] = refusal.param
    return {"error": error}


def missing(*, kind: str, id: str, param: str = "id", in_path: bool = True) -> Refusal:
    """No object of this kind with this id: 404 when the path names it, 400 when a parameter does."""
    return Refusal(
        status=404 if in_path else 400,
        code="resource_missing",
        param=param,
        message=f"No such {kind}: '{id[:80]}'",
    )


def state(*, code: str, message: str, param: str | None = None) -> Refusal:
    """The object is in no state to do this (400). The call began executing, so the answer is kept for its key."""
    return Refusal(status=400, code=code, param=param, message=message, stored=True)


def server_error(*, status: int) -> Refusal:
    """A failure of the server itself; says nothing about what happened."""
    return Refusal(status=status, code="api_error", message="An unexpected error occurred on the server.")
