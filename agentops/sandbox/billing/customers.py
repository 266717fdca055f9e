"""Customers: who is billed."""

from agentops.sandbox import fields, moments, refusals
from agentops.sandbox.billing import common
from agentops.sandbox.transaction import Transaction, visible
from agentops.sandbox.wire import Answer, Call, Doc

_EDITABLE = ("name", "email", "description", "phone")


def blank(*, id: str, name: str | None, metadata: Doc) -> Doc:
    """A new customer document."""
    return {
        "id": id,
        "object": "customer",
        "address": None,
        "balance": 0,
        "created": int(moments.now()),
        "currency": None,
        "default_source": None,
        "delinquent": False,
        "description": None,
        "discount": None,
        "email": None,
        "invoice_prefix": id[-8:].upper(),
        "livemode": False,
        "metadata": metadata,
        "name": name,
        "phone": None,
        "preferred_locales": [],
        "shipping": None,
        "tax_exempt": "none",
        "test_clock": None,
    }


def get(*, tx: Transaction, id: str, in_path: bool = True) -> Doc:
    """The customer. Raises Refusal when there is none."""
    customer = tx.find(kind="customer", id=id)
    if customer is None:
        raise refusals.missing(kind="customer", id=id, param="id" if in_path else "customer", in_path=in_path)
    return customer


def create(tx: Transaction, call: Call) -> Answer:
    """POST /v1/customers"""
    common.only(params=call.params, allowed=(*_EDITABLE, "metadata"))
    customer = blank(id=moments.new_id(prefix="cus"), name=None, metadata=common.metadata(params=call.params))
    for name in _EDITABLE:
        customer[name] = fields.text(params=call.params, name=name)
    tx.insert(kind="customer", doc=customer)
    tx.effect(objects={"customer": customer["id"]})
    return Answer(body=visible(doc=customer))


def retrieve(tx: Transaction, call: Call) -> Answer:
    """GET /v1/customers/{customer}"""
    common.only(params=call.params, allowed=())
    return Answer(body=visible(doc=get(tx=tx, id=call.ids["customer"])))


def update(tx: Transaction, call: Call) -> Answer:
    """POST /v1/customers/{customer}"""
    common.only(params=call.params, allowed=(*_EDITABLE, "metadata"))
    customer = get(tx=tx, id=call.ids["customer"])
    for name in _EDITABLE:
        if name in call.params:
            customer[name] = fields.text(params=call.params, name=name)
    customer["metadata"] = common.metadata(params=call.params, current=customer["metadata"])
    tx.replace(kind="customer", doc=customer)
    tx.effect(objects={"customer": customer["id"]})
    return Answer(body=visible(doc=customer))


def listed(tx: Transaction, call: Call) -> Answer:
    """GET /v1/customers"""
    return common.listing(tx=tx, kind="customer", filters=("email",))
