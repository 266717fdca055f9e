"""The help desk's JSON API: one request a call, a total time limit, errors sorted by what they prove."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import requests

from runs.readable import Unreadable, read_json
from runs.tools.base import Ambiguous, NoSuchThing, NotSent, ToolError, Unreachable
from runs.tools.http import Connection, LimitedSession, from_exception, from_status, raw_answer, unreachable

SYSTEM = "Help desk"
DEPENDENCY = "helpdesk"
PAGE = 100
MAX_PAGES = 50  # of one lookup; beyond it the lookup fails rather than overlook something

Doc = dict[str, Any]


def path(*parts: str) -> str:
    """A path of quoted parts: an id with a slash or dots in it names one thing or nothing. Raises NoSuchThing."""
    for part in parts:
        if part in {"", ".", ".."}:
            raise NoSuchThing(f"Anything with the id {part!r}")
    return "/".join(quote(part, safe="") for part in parts)


@contextmanager
def session(connection: Connection) -> Iterator[LimitedSession]:
    """A session for one call or lookup. Raises NotSent when the address or the token is missing from the settings."""
    if not connection.url or not connection.secret:
        raise NotSent("The help desk's address or token is not set: give HELPDESK_URL and HELPDESK_TOKEN.")
    with connection.session() as opened:
        opened.headers.update({"Authorization": f"Bearer {connection.secret}", "Accept": "application/json"})
        yield opened


def failure(answer: requests.Response) -> ToolError:
    """What a complete answer that is no success proves."""
    raw = raw_answer(status=answer.status_code, headers=answer.headers, body=answer.text)
    code = detail = ""
    try:
        told = read_json(answer.content)["error"]
        code, detail = str(told["code"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        pass  # a proxy's page: the status alone has to do
    return from_status(system=SYSTEM, code=code, detail=detail, raw=raw)


def write(
    connection: Connection, *, method: str, to: str, body: Doc, identity: str, wire_key: str, if_match: str = ""
) -> Doc:
    """Send one change and give back the answer's object. Raises NotSent, Refused, Overloaded or Ambiguous."""
    headers = {"Idempotency-Key": wire_key, "Operation-Identity": identity}
    if if_match:
        headers["If-Match"] = if_match
    with session(connection) as opened:
        try:
            answer = opened.request(
                method,
                f"{connection.url.rstrip('/')}/{to}",
                json=body,
                headers=headers,
                timeout=connection.timeouts,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise from_exception(system=SYSTEM, error=error) from error
    if not 200 <= answer.status_code < 300:
        raise failure(answer)
    given = _object(answer)
    if given is None:
        raw = raw_answer(status=answer.status_code, headers=answer.headers, body=answer.text)
        raise Ambiguous("The help desk's answer cannot be read.", raw=raw)
    return given


def read(connection: Connection, *, of: str, what: str) -> Doc:
    """One object. Raises Unreachable, and NoSuchThing(what) when the help desk says it does not exist."""
    try:
        with session(connection) as opened:
            return _get(opened, connection=connection, of=of, params={}, what=what)
    except NotSent as error:
        raise unreachable(system=SYSTEM, dependency=DEPENDENCY, error=error) from error


def read_all(connection: Connection, *, of: str, params: dict[str, str]) -> tuple[list[Doc], int]:
    """Everything a list gives, and on how many pages. Raises Unreachable."""
    found: list[Doc] = []
    after: dict[str, str] = {}
    try:
        with session(connection) as opened:
            for number in range(1, MAX_PAGES + 1):
                wanted = {**params, **after, "limit": str(PAGE)}
                page = _get(opened, connection=connection, of=of, params=wanted, what="")
                data, more = page.get("data"), page.get("has_more")
                if not isinstance(data, list) or not isinstance(more, bool) or (more and not data):
                    raise Unreachable("The help desk's list cannot be read.")
                if not all(isinstance(one, dict) and "id" in one for one in data):
                    raise Unreachable("The help desk's list cannot be read.")
                found += data
                if not more:
                    return found, number
                after = {"starting_after": str(data[-1]["id"])}
    except NotSent as error:
        raise unreachable(system=SYSTEM, dependency=DEPENDENCY, error=error) from error
    raise Unreachable("The help desk's list has more pages than any lookup reads.")


def _get(opened: LimitedSession, *, connection: Connection, of: str, params: dict[str, str], what: str) -> Doc:
    try:
        answer = opened.get(
            f"{connection.url.rstrip('/')}/{of}", params=params, timeout=connection.timeouts, allow_redirects=False
        )
    except requests.RequestException as error:
        raise unreachable(
            system=SYSTEM, dependency=DEPENDENCY, error=from_exception(system=SYSTEM, error=error)
        ) from error
    if answer.status_code == 404 and what:
        raise NoSuchThing(what)
    if answer.status_code != 200:
        raise unreachable(system=SYSTEM, dependency=DEPENDENCY, error=failure(answer))
    given = _object(answer)
    if given is None:
        raise Unreachable("The help desk's answer cannot be read.")
    return given


def _object(answer: requests.Response) -> Doc | None:
    """The answer's object; None where it is none that can be read and kept."""
    try:
        given = read_json(answer.content)
    except Unreadable:
        return None
    return given if isinstance(given, dict) else None
