"""The way of every call to billing and help desk: read, log, fault, execute, answer (or not)."""

import asyncio
import hmac
import json
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agentops.sandbox import execute, network, refusals, wire
from agentops.sandbox.config import Config
from agentops.sandbox.courier import Courier
from agentops.sandbox.faults import Fault
from agentops.sandbox.store import Store
from agentops.sandbox.wire import Answer, Call, Operation, Refusal

_NO_EFFECT_NO_ANSWER = frozenset({"timeout_without_effect", "reset_without_effect"})


async def body(*, request: Request) -> bytes:
    """The request's body. Raises Refusal (413) beyond the limit and ClientDisconnect when it never ends."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > wire.MAX_BODY_BYTES:
            message = f"The body is longer than {wire.MAX_BODY_BYTES} bytes."
            raise Refusal(status=413, code="body_too_large", message=message)
    return bytes(raw)


def response(*, answer: Answer) -> Response:
    """The answer as JSON."""
    return Response(json.dumps(answer.body), answer.status, headers=answer.headers, media_type="application/json")


class Pipeline:
    """Carries calls through the store; one per process."""

    def __init__(self, *, config: Config, store: Store, courier: Courier) -> None:
        self._config = config
        self._store = store
        self._courier = courier

    async def handle(self, *, operation: Operation, request: Request) -> Response:
        """Answer one request, or break its connection as its fault says."""
        call, refusal = await self._read(operation=operation, request=request)
        seq, fault = await run_in_threadpool(
            execute.begin, store=self._store, operation=operation, call=call, refusal=refusal
        )
        if refusal:
            return response(answer=refusals.answer(system=call.system, refusal=refusal))
        mode = fault.mode if fault else "ok"
        if fault and mode == "ok_slow":
            return await self._slow(operation=operation, call=call, seq=seq, fault=fault)
        answer = Answer()
        if mode not in _NO_EFFECT_NO_ANSWER:
            answer = await run_in_threadpool(
                execute.perform, store=self._store, operation=operation, call=call, request_seq=seq, fault=fault
            )
        if mode == "event_before_response":
            await run_in_threadpool(self._courier.deliver_for, request_seq=seq)
        self._courier.wake()
        return _ending(mode=mode, fault=fault, answer=answer)

    async def _slow(self, *, operation: Operation, call: Call, seq: int, fault: Fault) -> Response:
        """A correct answer after a while. The effect happens even if the caller has left by then."""
        seconds = fault.params["seconds"]
        late = fault.params["effect_at"] == "end"
        perform = partial(
            execute.perform, store=self._store, operation=operation, call=call, request_seq=seq, fault=fault
        )
        note = partial(execute.release, store=self._store, call=call, request_seq=seq)
        try:
            if late:
                claim = partial(execute.claim, store=self._store, operation=operation, call=call, seconds=seconds)
                await run_in_threadpool(claim)
                await asyncio.sleep(seconds)
                answer = await run_in_threadpool(perform, claimed=True)
                self._courier.wake()
            else:
                answer = await run_in_threadpool(perform, running_seconds=seconds)
                self._courier.wake()
                await asyncio.sleep(seconds)
                await run_in_threadpool(
                    note, status=answer.status, owns_key="Idempotent-Replayed" not in answer.headers
                )
        except Refusal as refusal:
            answer = refusals.answer(system=call.system, refusal=refusal)
            await run_in_threadpool(note, status=answer.status, owns_key=False)
        return response(answer=answer)

    async def _read(self, *, operation: Operation, request: Request) -> tuple[Call, Refusal | None]:
        refusal = self._denied(system=operation.system, request=request)
        params: wire.Doc = {}
        if refusal is None:
            try:
                params = await _params(system=operation.system, request=request)
            except Refusal as problem:
                refusal = problem
            except ClientDisconnect:
                refusal = Refusal(status=400, code="body_incomplete", message="The body ended too early.")
        path = request.url.path
        metadata = params.get("metadata")
        identity = request.headers.get("operation-identity")
        if isinstance(metadata, dict) and isinstance(metadata.get("operation_identity"), str):
            identity = metadata["operation_identity"]
        wire_key = request.headers.get("idempotency-key")
        if identity is None and wire_key:  # a call that takes no metadata, such as voiding, is known by its key alone
            identity = wire_key.rpartition(":")[0] or None
        call = Call(
            system=operation.system,
            operation=operation.name,
            method=request.method,
            path=path,
            ids=dict(request.path_params),
            params=params,
            headers=dict(request.headers),
            wire_key=wire_key,
            identity=identity,
            fingerprint=wire.fingerprint(method=request.method, path=path, params=params),
        )
        if refusal is None and call.wire_key is not None and not 0 < len(call.wire_key) <= 255:
            message = "Idempotency-Key must have 1 to 255 characters."
            refusal = Refusal(status=400, code="parameter_invalid", param="Idempotency-Key", message=message)
        return call, refusal

    def _denied(self, *, system: str, request: Request) -> Refusal | None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        expected = self._config.api_key if system == "billing" else self._config.token
        known = scheme.lower() == "bearer" and bool(given)
        if known and (expected is None or hmac.compare_digest(given.encode(), expected.encode())):
            return None
        remedy = "Send 'Authorization: Bearer <key>'" if not known else "Check the key"
        return Refusal(status=401, code="unauthorized", message=f"Invalid or missing credentials. {remedy}.")


async def _params(*, system: str, request: Request) -> wire.Doc:
    raw = await body(request=request)
    if request.method != "GET" and system != "billing":
        return wire.json_object(raw=raw)
    try:
        return wire.nested_form(text=request.url.query if request.method == "GET" else raw.decode())
    except ValueError:  # which UnicodeDecodeError is too
        message = "The parameters must be a form in UTF-8 with at most 2000 fields."
        raise Refusal(status=400, code="parameter_invalid", message=message) from None


def _ending(*, mode: str, fault: Fault | None, answer: Answer) -> Response:
    if fault and mode in ("execute_and_timeout", "timeout_without_effect"):
        return network.Held(seconds=fault.params["seconds"])
    if mode in ("execute_then_reset", "reset_without_effect"):
        return network.Reset()
    if mode == "cut_body":
        return network.Cut(json.dumps(answer.body), answer.status, answer.headers, media_type="application/json")
    return response(answer=answer)
