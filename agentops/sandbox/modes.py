"""The fault modes: one literal registry, read by the pipeline, the fault API and the pages that offer them."""

from dataclasses import dataclass, field
from typing import Any

from agentops.sandbox.fields import refuse
from agentops.sandbox.wire import Doc


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """``kind``: number (seconds, 0 to 600), integer, text or boolean."""

    kind: str
    default: Any
    help: str


@dataclass(frozen=True, kw_only=True)
class Mode:
    """``applies_to``: the trait an operation must have. ``on_events``: taken when an event is sent, not by the call."""

    name: str
    applies_to: str
    explanation: str
    parameters: dict[str, Parameter] = field(default_factory=dict)
    on_events: bool = False


def _seconds(default: float, text: str) -> Parameter:
    return Parameter(kind="number", default=default, help=text)


_HOLD = {"seconds": _seconds(30.0, "how long the connection is held before it is dropped")}
_SERVER_ERROR = {
    "status": Parameter(kind="integer", default=500, help="500 to 599"),
    "stored": Parameter(
        kind="boolean",
        default=None,
        help="whether the error is the answer kept for the key; by default a 500 is and a gateway's 502 to 599 is not",
    ),
}

_ALL = (
    Mode(
        name="ok",
        applies_to="any",
        explanation="Nothing goes wrong; uses up one call, to place a fault on a later one.",
    ),
    Mode(
        name="ok_slow",
        applies_to="any",
        explanation="Answers correctly, but late. The key counts as in use meanwhile (409 for others).",
        parameters={
            "seconds": _seconds(2.0, "delay before the answer"),
            "effect_at": Parameter(kind="text", default="end", help="start or end: when the effect happens"),
        },
    ),
    Mode(
        name="execute_and_timeout",
        applies_to="any",
        explanation="The effect happens; no answer ever comes.",
        parameters=_HOLD,
    ),
    Mode(
        name="timeout_without_effect",
        applies_to="any",
        explanation="Nothing happens and no answer ever comes.",
        parameters=_HOLD,
    ),
    Mode(
        name="execute_then_5xx",
        applies_to="any",
        explanation="The effect happens; the answer is a server error.",
        parameters=_SERVER_ERROR,
    ),
    Mode(
        name="5xx_without_effect",
        applies_to="any",
        explanation="Nothing happens; the answer is a server error.",
        parameters=_SERVER_ERROR,
    ),
    Mode(name="execute_then_reset", applies_to="any", explanation="The effect happens; the connection is reset."),
    Mode(name="reset_without_effect", applies_to="any", explanation="Nothing happens; the connection is reset."),
    Mode(
        name="cut_body",
        applies_to="any",
        explanation="The effect happens; the answer stops in the middle of its body.",
    ),
    Mode(
        name="same_key_running",
        applies_to="write",
        explanation="409: says that another call with this key is still running. Nothing happens.",
    ),
    Mode(
        name="param_mismatch",
        applies_to="write",
        explanation="Says that this key was used with other parameters (billing 400, help desk 422). Nothing happens.",
    ),
    Mode(
        name="overloaded",
        applies_to="any",
        explanation="429: too many requests. Nothing happens.",
        parameters={
            "retry_after": Parameter(kind="text", default="seconds", help="seconds, date, garbage or none"),
            "seconds": _seconds(1.0, "what Retry-After asks to wait"),
        },
    ),
    Mode(
        name="key_forgotten_after",
        applies_to="write",
        explanation="Works, but its key is forgotten early: the same key again makes a second effect.",
        parameters={"seconds": _seconds(0.0, "how long the key is remembered")},
    ),
    Mode(
        name="keys_ignored",
        applies_to="write",
        explanation="Works, but neither looks up nor stores the key: the same key again makes a second effect.",
    ),
    Mode(
        name="accepted_then_failed_event",
        applies_to="credit",
        explanation="The credit note is issued; later billing voids it by itself and says so only in an event.",
        parameters={"seconds": _seconds(0.5, "delay before billing voids it")},
    ),
    Mode(
        name="accepted_outcome_later",
        applies_to="credit",
        explanation="The credit note is only taken on; whether it stands shows later, in a lookup and in an event.",
        parameters={
            "seconds": _seconds(0.5, "delay before it is known"),
            "stands": Parameter(kind="boolean", default=True, help="false: billing does not carry it out"),
            "told": Parameter(kind="boolean", default=True, help="false: no event says so, only a lookup shows it"),
        },
    ),
    Mode(
        name="event_before_response",
        applies_to="write",
        explanation="The webhook arrives before the answer to the call.",
    ),
    Mode(
        name="events_duplicate",
        applies_to="write",
        on_events=True,
        explanation="The same event is delivered several times.",
        parameters={"copies": Parameter(kind="integer", default=2, help="deliveries of the one event, 2 to 20")},
    ),
    Mode(
        name="events_reorder",
        applies_to="write",
        on_events=True,
        explanation="The event is held back until a later one was delivered.",
        parameters={"seconds": _seconds(5.0, "sent anyway after this long")},
    ),
    Mode(
        name="events_delay",
        applies_to="write",
        on_events=True,
        explanation="The event is delivered late.",
        parameters={"seconds": _seconds(3.0, "delay before the first attempt")},
    ),
    Mode(
        name="events_forged",
        applies_to="write",
        on_events=True,
        explanation="A second event that billing never made arrives too, with another amount and object.",
        parameters={
            "signed": Parameter(kind="boolean", default=False, help="true: with a valid signature (a leaked secret)")
        },
    ),
    Mode(
        name="events_wrong_signature",
        applies_to="write",
        on_events=True,
        explanation="The event is true but signed with another secret, on every attempt.",
    ),
    Mode(
        name="lookup_not_found",
        applies_to="read",
        explanation="A lookup finds nothing: 404, or an empty list.",
    ),
    Mode(
        name="lookup_stale",
        applies_to="read",
        explanation="A lookup answers as of some time ago.",
        parameters={"seconds": _seconds(60.0, "how old the answer is")},
    ),
    Mode(
        name="lookup_error",
        applies_to="read",
        explanation="A lookup fails with a server error.",
        parameters={"status": Parameter(kind="integer", default=500, help="500 to 599")},
    ),
    Mode(
        name="precondition",
        applies_to="precondition",
        explanation="Somebody else edits the ticket just before the change, so that its version has moved (412).",
    ),
    Mode(
        name="wrong_amount",
        applies_to="amount",
        explanation="The effect happens with another amount than was asked for.",
        parameters={
            "amount_minor": Parameter(kind="integer", default=None, help="the amount; otherwise delta_minor is added"),
            "delta_minor": Parameter(kind="integer", default=100, help="added to what was asked for"),
        },
    ),
    Mode(
        name="wrong_account",
        applies_to="account",
        explanation="The effect happens on another customer's record.",
        parameters={
            "target": Parameter(
                kind="text", default=None, help="invoice id or number, or ticket id; otherwise any other"
            )
        },
    ),
)

MODES: dict[str, Mode] = {mode.name: mode for mode in _ALL}

_LIMITS = {"status": (500, 599), "copies": (2, 20), "amount_minor": (1, 10**12), "delta_minor": (-(10**12), 10**12)}
_OPTIONS = {"retry_after": ("seconds", "date", "garbage", "none"), "effect_at": ("start", "end")}


def parameters(*, mode: Mode, given: Doc) -> Doc:
    """The mode's parameters with defaults filled in. Raises Refusal naming the parameter that is unknown or wrong."""
    for name in given:
        if name not in mode.parameters:
            known = ", ".join(mode.parameters) or "none"
            raise refuse(param=f"params.{name}", message=f"{mode.name} has no parameter {name}. Known: {known}.")
    values = {name: given.get(name, spec.default) for name, spec in mode.parameters.items()}
    for name, value in values.items():
        problem = None if value is None else _problem(kind=mode.parameters[name].kind, name=name, value=value)
        if problem:
            raise refuse(param=f"params.{name}", message=f"params.{name} of {mode.name} must be {problem}.")
    return values


def _problem(*, kind: str, name: str, value: Any) -> str | None:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "number":
        return None if numeric and 0 <= value <= 600 else "a number of seconds from 0 to 600"
    if kind == "boolean":
        return None if isinstance(value, bool) else "true or false"
    if kind == "integer":
        low, high = _LIMITS[name]
        fits = isinstance(value, int) and numeric and low <= value <= high
        return None if fits else f"a whole number from {low} to {high}"
    options = _OPTIONS.get(name)
    if options:
        return None if value in options else f"one of {', '.join(options)}"
    return None if isinstance(value, str) and 0 < len(value) <= 200 else "text of at most 200 characters"
