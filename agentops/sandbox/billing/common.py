"""What all billing objects share: parameters, currencies, lists."""

from typing import Any

from agentops.sandbox import fields
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Doc

MAX_AMOUNT = 99_999_999_999

# Digits after the point, by ISO 4217; all others here have 2.
_NO_MINOR = "bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf"
_THREE = "bhd jod kwd omr tnd"
_TWO = (
    "aed ars aud brl cad chf cny czk dkk egp eur gbp hkd huf idr ils inr mad mxn myr nok nzd pen php pln ron sar sek "
    "sgd thb try twd uah usd zar"
)
EXPONENTS: dict[str, int] = {
    **dict.fromkeys(_NO_MINOR.split(), 0),
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys(_THREE.split(), 3),
}

# Accepted everywhere and without meaning here: objects are never shortened.
EVERYWHERE = ("expand",)
_PAGING = ("limit", "starting_after", "ending_before")


def currency(*, params: Doc, name: str = "currency", default: str | None = None) -> str:
    """A lower-case currency code; amounts in it are integer minor units."""
    value = fields.text(params=params, name=name, required=default is None, longest=3) or default or ""
    if value.lower() not in EXPONENTS:
        raise fields.refuse(param=name, message=f"Invalid currency: {value}. Use a lower-case ISO code such as usd.")
    return value.lower()


def metadata(*, params: Doc, current: Doc | None = None) -> Doc:
    """Metadata after this call: given names are set, an empty value removes its name (Stripe's rule; 50 at most)."""
    merged = dict(current or {})
    for name, value in fields.group(params=params, name="metadata").items():
        if not isinstance(value, str) or len(value) > 500 or len(name) > 40:
            message = "Metadata takes names of at most 40 and text of at most 500 characters."
            raise fields.refuse(param=f"metadata[{name[:40]}]", message=message)
        merged[name] = value
    merged = {name: value for name, value in merged.items() if value != ""}
    if len(merged) > 50:
        raise fields.refuse(param="metadata", message="Metadata takes at most 50 names.")
    return merged


def only(*, params: Doc, allowed: tuple[str, ...]) -> None:
    """Refuse parameters that are neither ``allowed`` nor meaningless everywhere."""
    fields.only(params=params, allowed=(*allowed, *EVERYWHERE))


def listing(
    *, tx: Transaction, kind: str, filters: tuple[str, ...] = (), shape: Any = visible, by_time: bool = False
) -> Answer:
    """One page, newest first, as Stripe pages: ``limit`` 1 to 100 (10), ``starting_after``, ``ending_before``; with
    ``by_time`` also ``created[gt|gte|lt|lte]`` in seconds."""
    params = tx.call.params
    only(params=params, allowed=(*filters, *_PAGING, *(("created",) if by_time else ())))
    match = {name: fields.text(params=params, name=name) for name in filters}
    docs, more = tx.page(
        kind=kind,
        match={name: value for name, value in match.items() if value is not None},
        limit=fields.integer(params=params, name="limit", low=1, high=100, default=10),
        after=fields.text(params=params, name="starting_after"),
        before=fields.text(params=params, name="ending_before"),
        created=_times(params=params) if by_time else {},
    )
    return Answer(body=list_body(data=[shape(doc=doc) for doc in docs], more=more, url=tx.call.path))


def _times(*, params: Doc) -> dict[str, int]:
    """The bounds of ``created``; a plain number is that very second."""
    if isinstance(params.get("created"), str) and params["created"]:
        return {"eq": fields.integer(params=params, name="created", low=0, high=2**33)}
    bounds = fields.group(params=params, name="created")
    fields.only(params=bounds, allowed=("gt", "gte", "lt", "lte"))
    return {
        name: fields.integer(params=bounds, name=name, low=0, high=2**33, label=f"created[{name}]") for name in bounds
    }


def list_body(*, data: list[Doc], more: bool, url: str) -> Doc:
    """Stripe's list object."""
    return {"object": "list", "data": data, "has_more": more, "url": url}
