"""The page at ``/``: the outside world at a glance, and a form for faults."""

import json
import sqlite3
from pathlib import Path
from urllib.parse import parse_qsl

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agentops.sandbox import control as actions
from agentops.sandbox import faults, fields, modes
from agentops.sandbox.billing.common import EXPONENTS
from agentops.sandbox.control import Control
from agentops.sandbox.pipeline import body
from agentops.sandbox.wire import Doc, Refusal

_HERE = Path(__file__).parent
_ROWS = 50
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def money(minor: int | None, currency: str | None) -> str:
    """Minor units as text with the currency's own number of decimals, e.g. ``12,000.00 USD``."""
    if minor is None or currency is None:
        return ""
    digits = EXPONENTS[currency]
    whole, rest = divmod(abs(minor), 10**digits)
    sign = "-" if minor < 0 else ""
    return f"{sign}{whole:,}{f'.{rest:0{digits}d}' if digits else ''} {currency.upper()}"


class Admin:
    """The page's routes, on top of the control actions."""

    def __init__(self, *, control: Control) -> None:
        self._control = control
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined
        )
        environment.filters["money"] = money
        self._template = environment.get_template("admin.html")

    def routes(self) -> list[Route]:
        """The page, its form targets and its stylesheet."""
        return [
            Route("/", self._page, methods=["GET"]),
            Route("/faults", self._add_fault, methods=["POST"]),
            Route("/faults/clear", self._clear_faults, methods=["POST"]),
            Route("/sandbox.css", self._style, methods=["GET"]),
        ]

    async def _style(self, request: Request) -> Response:
        return FileResponse(_HERE / "static" / "sandbox.css", media_type="text/css")

    async def _page(self, request: Request) -> Response:
        return await self._render(request=request, problem=None, status=200)

    async def _render(self, *, request: Request, problem: str | None, status: int) -> Response:
        context = await run_in_threadpool(self._context, request)
        html = self._template.render(**context, problem=problem)
        return HTMLResponse(html, status_code=status, headers=_HEADERS)

    def _context(self, request: Request) -> Doc:
        with self._control.store.read() as db:
            world = actions.read_world(self._control, db, request, {})
            requests = db.execute("SELECT * FROM requests ORDER BY seq DESC LIMIT ?", (_ROWS,)).fetchall()
            ledger = db.execute("SELECT * FROM ledger ORDER BY seq DESC LIMIT ?", (_ROWS,)).fetchall()
            deliveries = db.execute("SELECT * FROM deliveries ORDER BY id DESC LIMIT ?", (_ROWS,)).fetchall()
            return {
                "world": world,
                "names": {account["billing_customer"]: account["name"] for account in world["accounts"]},
                "faults": _active(db=db),
                "modes": list(modes.MODES.values()),
                "operations": [operation.name for operation in self._control.operations],
                "requests": [actions.request_row(row=row) for row in requests],
                "ledger": [{**dict(row), "objects": json.loads(row["objects"])} for row in ledger],
                "deliveries": [dict(row) for row in deliveries],
            }

    async def _add_fault(self, request: Request) -> Response:
        try:
            actions.same_origin(request=request)
            form = dict(parse_qsl((await body(request=request)).decode("utf-8", "replace")))
            await run_in_threadpool(self._control.run, actions.add_faults, request, _spec(form=form))
        except Refusal as refusal:
            return await self._render(request=request, problem=refusal.message, status=refusal.status)
        return RedirectResponse("/#faults", status_code=303)

    async def _clear_faults(self, request: Request) -> Response:
        try:
            actions.same_origin(request=request)
            await run_in_threadpool(self._control.run, actions.remove_faults, request, {})
        except Refusal as refusal:
            return await self._render(request=request, problem=refusal.message, status=refusal.status)
        return RedirectResponse("/#faults", status_code=303)


def _active(*, db: sqlite3.Connection) -> list[Doc]:
    rows = [faults.shown(row=row) for row in db.execute("SELECT * FROM faults ORDER BY seq DESC LIMIT ?", (_ROWS,))]
    return sorted(rows, key=lambda fault: not fault["active"])


def _spec(*, form: dict[str, str]) -> Doc:
    """The form's texts as a fault; an empty number of times means until removed."""
    spec: Doc = {"mode": form.get("mode", ""), "operation": form.get("operation") or "*"}
    times = form.get("times", "").strip()
    spec["times"] = times or None
    name, value = form.get("match_name", ""), form.get("match_value", "").strip()
    if value:
        spec["match"] = {name: value}
    text = form.get("params", "").strip()
    if text:
        try:
            spec["params"] = json.loads(text)
        except ValueError:
            raise fields.refuse(param="params", message='Parameters are JSON, such as {"seconds": 5}.') from None
    return spec
