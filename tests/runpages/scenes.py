"""The reference case told to different points, for looking at pages: rows and record agree, times are hours apart."""

import datetime as dt
from typing import Any

from reconciliation import their_names
from reconciliation.models import Operation
from runs.models import Run
from tests.runpages import world as w

S = w.S


class Teller:
    """Tells one run's story; `now` moves on, and the product's clock with it."""

    def __init__(self, run: Run, start: dt.datetime) -> None:
        self.run, self.now = run, start

    def later(self, seconds: float) -> "Teller":
        self.now += dt.timedelta(seconds=seconds)
        return self

    def tell(self, kind: str, **data: Any) -> "Teller":
        with w.at(self.now):
            w.tell(self.run, kind, **data)
        return self

    def move(self, to: w.RunState, why: str = "", **fields: Any) -> "Teller":
        with w.at(self.now):
            w.move(self.run, to, why, **fields)
        return self


def _first_reading(t: Teller, version: str) -> None:
    pieces = [
        {"kind": kind, "title": title, "version": version}
        for kind, title in (
            ("ticket", "CS-8812"),
            ("incident", "INC-311"),
            ("sla", "Business"),
            ("invoice", "INV-2041"),
        )
    ]
    t.move(S.GATHERING).later(4).tell("evidence.read", reading=1, pieces=pieces)
    w.evidence(
        t.run, "ticket", "Ticket CS-8812", "We were down all afternoon and want our money back.", source="help desk"
    )
    w.evidence(t.run, "invoice", "Invoice INV-2041", "October 2026, total $12,000.00 USD, open.")
    w.evidence(t.run, "incident", "Incident INC-311", "Final: 13:14 to 16:48 UTC, 214 minutes.", source="help desk")


def asked(start: dt.datetime, **fields: Any) -> tuple[Teller, Any, Any]:
    """Up to the open request: teller, proposal, request."""
    t = Teller(w.new_run(created_at=start, **fields), start)
    t.tell("run.started", title=t.run.title, workflow="service_credit v1").later(1)
    _first_reading(t, "3")
    t.later(0.4).move(S.DECIDING).later(7)
    w.model_call(t.run, t.now)
    t.tell("model.answered", model="rules-1", choice="issue_credit", refusal_code="", refusal="")
    proposal = w.propose(t.run)
    t.tell("proposal.made", number=1, step="credit", tool=proposal.tool, amount_minor=120000, currency="USD",
           identity=proposal.identity)  # fmt: skip
    t.later(0.2).move(S.AUTHORISING).later(0.1)
    rules = [{"id": "above-1000", "text": "credits above $1,000 need a support manager"}]
    t.tell("policy.checked", tool=proposal.tool, effect="ask", policy="Service credits v1", rules=rules)
    request = w.ask(t.run, proposal, respond_by=w.NOW + dt.timedelta(minutes=53))
    t.tell("request.opened", request=str(request.pk), ask=request.ask, group="manager")
    t.move(S.AWAITING_APPROVAL, waits_for="an answer from manager", wake_at=None)
    return t, proposal, request


def _approve(t: Teller, proposal: Any, request: Any) -> Operation:
    maya = w.person("maya", "approvals.vote")
    w.vote(request, maya, comment="Checked against the incident report.")
    type(request).objects.filter(pk=request.pk).update(state="approved", closed_at=t.now)
    decision = w.decide(proposal, request=request)
    t.tell(
        "request.approved",
        _actor=w.principals.of_user(user=maya),
        request=str(request.pk),
        comment="Checked against the incident report.",
    )
    t.later(0.3).move(S.EXECUTING)
    type(request).objects.filter(pk=request.pk).update(state="spent")
    operation = w.operate(proposal, decision)
    t.tell("operation.created", operation=str(operation.pk), identity=operation.identity, tool=operation.tool,
           amount_minor=120000, currency="USD")  # fmt: skip
    return operation


def unknown(start: dt.datetime, **fields: Any) -> tuple[Teller, Operation]:
    """Approved, sent twice, and not confirmed since."""
    t, proposal, request = asked(start, **fields)
    operation = _approve(t.later(14400), proposal, request)
    key = str(operation.pk)
    w.shift(operation, "sending")
    t.tell("operation.state", operation=key, source="authorised", target="sending", why="")
    t.tell("attempt.opened", operation=key, number=1, wire_key=f"{operation.identity}:0")
    w.attempt(operation, 1, t.now, closed_at=t.now, result="not_sent", detail="connection refused")
    t.later(0.1).tell("attempt.closed", operation=key, number=1, result="not_sent", detail="connection refused")
    t.later(2).tell("attempt.opened", operation=key, number=2, wire_key=f"{operation.identity}:0")
    opened = t.now
    t.later(10).tell("attempt.closed", operation=key, number=2, result="ambiguous", detail="no answer in 10 s")
    w.attempt(operation, 2, opened, closed_at=t.now, result="ambiguous", detail="no answer in 10 s")
    w.shift(operation, "unknown", unknown_since=t.now, next_probe_at=w.NOW + dt.timedelta(minutes=2), probes_made=2)
    t.tell("operation.state", operation=key, source="sending", target="unknown", why="no answer in 10 s")
    t.move(S.OUTCOME_UNKNOWN, "it may have happened", waits_for="certainty from billing", wake_at=None)
    w.observe(operation, "unreachable", t.later(15).now, "billing did not answer")
    t.tell("probe.made", operation=key, finding="unreachable", summary="billing did not answer", conclusive=False)
    return t, operation


def in_a_case(start: dt.datetime, **fields: Any) -> tuple[Teller, Operation]:
    """…and billing shows something that is not quite what was sent."""
    t, operation = unknown(start, **fields)
    raw = {
        "id": "cn_5519", "number": "CR-5519", "amount": 100000, "currency": "usd", "customer": "cus_acme",
        "memo": "SLA credit", "metadata": {"operation_identity": operation.identity},
    }  # fmt: skip
    found = {
        "reference": "CR-5519", "identity": operation.identity, "at": t.now.isoformat(), "raw": raw,
        "mismatch": {"amount_minor": ["120000", "100000"]},
    }  # fmt: skip
    summary = "one recorded, CR-5519, but not as sent: amount"
    w.observe(operation, "different", t.later(43).now, summary, conclusive=True, raw={"records": [found]})
    t.tell("probe.made", operation=str(operation.pk), finding="different", summary=summary, conclusive=True)
    case = w.open_case(
        operation,
        "CR-5519 carries our identity but is not what was sent: Amount: sent $1,200.00 USD, recorded $1,000.00 USD",
    )
    t.tell("case.opened", case=case.label, case_kind="different", why=case.why, operation=str(operation.pk))
    return t, operation


def completed(start: dt.datetime, **fields: Any) -> tuple[Teller, Operation]:
    """…and found after all, as sent; the run ends."""
    t, operation = unknown(start, **fields)
    key = str(operation.pk)
    t.later(880)
    w.observe(operation, "found", t.now, "exactly one recorded, CR-5520, as sent", conclusive=True)
    t.tell(
        "probe.made", operation=key, finding="found", summary="exactly one recorded, CR-5520, as sent", conclusive=True
    )
    w.shift(
        operation, "succeeded", external_reference="CR-5520", settled_by="probe", settled_at=t.now, next_probe_at=None
    )
    assert their_names.take(operation=operation, names=["CR-5520"]) is None
    t.tell("operation.state", operation=key, source="unknown", target="succeeded", why="exactly one recorded")
    t.later(0.4).move(S.EXECUTING).later(5)
    t.move(S.COMPLETED, "all done", outcome="Credit CR-5520 of $1,200.00 for Acme Corp confirmed by billing.")
    return t, operation


def needs_person(start: dt.datetime, **fields: Any) -> Teller:
    t = Teller(w.new_run(created_at=start, **fields), start)
    t.tell("run.started", title=t.run.title, workflow="service_credit v1").later(1)
    _first_reading(t, "1")
    t.later(0.5).move(S.DECIDING).later(3)
    w.model_call(t.run, t.now)
    t.tell("model.answered", model="rules-1", choice="escalate", refusal_code="", refusal="")
    return t.move(
        S.NEEDS_PERSON,
        "the agent handed it over",
        person_code="escalated",
        person_reason="The customer also claims lost sales, which no plan covers. Somebody has to talk to them.",
        waits_for="a person to go on",
        wake_at=None,
    )
