"""Putting the process together."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agentops.sandbox import control, refusals
from agentops.sandbox.admin import Admin
from agentops.sandbox.billing import operations as billing
from agentops.sandbox.config import Config
from agentops.sandbox.courier import Courier
from agentops.sandbox.helpdesk import operations as helpdesk
from agentops.sandbox.pipeline import Pipeline, response
from agentops.sandbox.store import Store
from agentops.sandbox.wire import Operation, Refusal

SYSTEM_OPERATIONS = (*billing.OPERATIONS, *helpdesk.OPERATIONS)


def build(*, config: Config, on_ready: Callable[[], None]) -> Starlette:
    """The application; ``on_ready`` is called once it can answer."""
    store = Store(data=config.data)
    if config.webhook_url:
        with store.write() as db:
            control.save_setting(db=db, name="webhook_url", value=config.webhook_url)
    courier = Courier(store=store, secret=config.webhook_secret, jobs=billing.JOBS)
    pipeline = Pipeline(config=config, store=store, courier=courier)
    actions = control.Control(store=store, operations=(*SYSTEM_OPERATIONS, *control.OPERATIONS), wake=courier.wake)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        courier.start()
        on_ready()
        yield
        courier.stop()

    routes: list[BaseRoute] = [_route(pipeline=pipeline, operation=operation) for operation in SYSTEM_OPERATIONS]
    routes += control.routes(control=actions)
    routes += Admin(control=actions).routes()
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _unknown, 405: _unknown})


def _route(*, pipeline: Pipeline, operation: Operation) -> Route:
    async def endpoint(request: Request) -> Response:
        return await pipeline.handle(operation=operation, request=request)

    handler: Callable[[Request], Awaitable[Response]] = endpoint
    return Route(operation.path, handler, methods=[operation.method], name=operation.name)


async def _unknown(request: Request, error: Exception) -> Response:
    """A path or method that no system here has, in the shape of the system whose prefix it bears."""
    path = request.url.path
    system = "billing" if path.startswith("/v1/") else "helpdesk" if path.startswith("/helpdesk/") else "sandbox"
    message = f"Unrecognized request URL ({request.method}: {path[:200]}). The sandbox has no such operation."
    status: int = getattr(error, "status_code", 404)
    refusal = Refusal(status=status, code="unknown_operation", message=message)
    return response(answer=refusals.answer(system=system, refusal=refusal))
