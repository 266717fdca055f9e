"""The official billing library, as this product uses it: one request a call, a total time limit, plain data back."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import stripe

from runs.readable import Unreadable, read_json
from runs.tools.base import Ambiguous, NoSuchThing, NotSent, ToolError, Unreachable
from runs.tools.http import Connection, from_exception, from_status, raw_answer, unreachable

SYSTEM = "Billing"
DEPENDENCY = "billing"
PAGE = 100
MAX_PAGES = 50  # of one lookup; beyond it the lookup fails rather than overlook something

Doc = dict[str, Any]


@contextmanager
def client(connection: Connection) -> Iterator[stripe.StripeClient]:
    """A client for one call or lookup. Raises NotSent when the address or the key is missing from the settings."""
    if not connection.url or not connection.secret:
        raise NotSent("Billing's address or key is not set: give BILLING_URL and BILLING_API_KEY.")
    with connection.session() as session:
        yield stripe.StripeClient(
            connection.secret,
            base_addresses={"api": connection.url.rstrip("/")},
            http_client=stripe.RequestsClient(timeout=connection.timeouts, session=session),
            max_network_retries=0,  # said, not left to a default: a retry in there would be invisible here
        )


def failure(error: stripe.StripeError) -> ToolError:
    """What an error of the library proves; everything on the network is in its cause, not in its class."""
    if isinstance(error, stripe.APIConnectionError):
        return from_exception(system=SYSTEM, error=error.__cause__)
    raw = raw_answer(status=error.http_status or 0, headers=dict(error.headers or {}), body=str(error.http_body or ""))
    if error.http_status is None or error.http_status < 300:
        return Ambiguous("Billing gave an answer that nobody can read.", raw=raw)
    said: Any = error.json_body
    told = said.get("error") if isinstance(said, dict) else None
    told = told if isinstance(told, dict) else {}
    kind = str(told.get("type") or "")
    code = kind if kind.startswith("idempotency") else str(told.get("code") or kind)
    return from_status(system=SYSTEM, code=code, detail=str(told.get("message") or ""), raw=raw)


def plain(answer: Any) -> Doc:
    """The library's object as plain data, {} when it is none. Raises Unreadable, or RecursionError."""
    if not isinstance(answer, stripe.StripeObject):
        return {}
    return dict(read_json(json.dumps(answer.to_dict(for_json=True))))


@contextmanager
def sending() -> Iterator[None]:
    """Turns every failure of a change inside into what it proves: an answer that nobody can read proves nothing."""
    try:
        yield
    except stripe.StripeError as error:
        raise failure(error) from error
    except (Unreadable, RecursionError) as error:
        raise Ambiguous(f"Billing gave an answer that nobody can read ({type(error).__name__}).") from error


@contextmanager
def reading(what: str = "") -> Iterator[None]:
    """Turns every failure inside into Unreachable, or into NoSuchThing(what), if named, when billing says 404."""
    try:
        yield
    except stripe.StripeError as error:
        if what and error.http_status == 404:
            raise NoSuchThing(what) from error
        raise unreachable(system=SYSTEM, dependency=DEPENDENCY, error=failure(error)) from error
    except NotSent as error:
        raise unreachable(system=SYSTEM, dependency=DEPENDENCY, error=error) from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise Unreachable(f"Billing gave an answer that nobody can read ({type(error).__name__}).") from error


def reference_of(*, note: Doc) -> str:
    """What a credit note is called in our records: the number people know it by, its id where it has none."""
    return str(note["number"] or note["id"])


def pages(fetch: Callable[[Any], Any], params: Doc) -> tuple[list[Doc], int]:
    """Everything a list call gives, newest first, and on how many pages. Raises ValueError on an unreadable page."""
    found: list[Doc] = []
    after: dict[str, str] = {}
    for number in range(1, MAX_PAGES + 1):
        page = plain(fetch({**params, **after, "limit": PAGE}))
        data, more = page["data"], page["has_more"]
        if not isinstance(data, list) or not isinstance(more, bool) or (more and not data):
            raise ValueError("not a page of a list")
        found += [dict(item) for item in data]
        if not more:
            return found, number
        after = {"starting_after": str(data[-1]["id"])}
    raise ValueError("more pages than any lookup reads")
