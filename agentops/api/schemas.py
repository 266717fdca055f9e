"""What goes in and out of the HTTP API."""

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, StrictStr

KEY = r"^[\x21-\x7e]{1,128}$"
KEY_WORDS = "1 to 128 visible ASCII characters"


class ToolTerms(Schema):
    """What narrows a tool for one run: `only` these values of policy variables, where the condition `when` holds (as in
    a policy's rule), `until` an ISO time with its offset. What is left out narrows nothing."""

    model_config = ConfigDict(extra="forbid")
    only: Annotated[dict[StrictStr, list[StrictStr]], Field(examples=[{"account": ["ACC-1093"]}])] = {}
    when: Annotated[StrictStr, Field(examples=["currency == 'USD' && amount_minor <= 50000"])] = ""
    until: Annotated[StrictStr, Field(max_length=60, examples=["2027-01-31T18:00:00+01:00"])] = ""


class StartRun(Schema):
    """Start a run: the workflow's name and its own input (see the workflow's documentation). `capabilities` names the
    tools that are left to the run, each with what narrows it further: always less than its workflow grants, never more.
    Left out, the run may do all that its workflow grants."""

    model_config = ConfigDict(extra="forbid")
    workflow: Annotated[StrictStr, Field(max_length=80, examples=["service_credit"])]
    input: Annotated[dict[str, Any], Field(examples=[{"ticket": "CS-8840"}])]
    capabilities: Annotated[dict[StrictStr, ToolTerms] | None, Field(max_length=50)] = None


class RunStarted(Schema):
    """Only what never changes, since the same key gives the same answer later, too."""

    id: uuid.UUID
    workflow: str
    workflow_version: str
    subject: str
    created_at: dt.datetime
    url: str


class DisputeOut(Schema):
    """A settled operation of which the other side shows something else. `our_record` is what it was settled as, which
    alone is not the truth; `state` is open, or noted (put right outside); `about` says it in words."""

    case: str
    state: Literal["open", "noted"]
    our_record: str
    about: str


class OperationOut(Schema):
    """`id` reads all there is about it (`/operations/{id}`). `outcome` is succeeded, failed, abandoned (given up,
    nothing done), not_confirmed, running, compensated (done and reversed since), or in_dispute:
    then `dispute` says what stands against what. `corrected` is how often our own record was put right since it was
    settled. `amount_minor` is what was really recorded, once that is known, and `sent_amount_minor` what was sent.
    `other_reference` is a second record, to be reversed there. `settled_by` is answer or probe (the other side's own
    word), or person: an admin settled it by evidence. `reversal` is where the newest attempt to undo it stands; while
    that is proposed the operation still counts."""

    id: uuid.UUID
    tool: str
    identity: str
    outcome: str
    corrected: int
    reference: str | None
    other_reference: str | None
    amount_minor: str | None
    sent_amount_minor: str | None
    currency: str | None
    settled_by: str | None
    dispute: DisputeOut | None
    reversal: Literal["proposed", "done", "rejected", "cancelled", "failed", "dropped"] | None


class AttemptOut(Schema):
    """`result` is empty while it is out; not_sent says that no byte left; `request` is what was sent."""

    number: int
    wire_key: str
    sender: str
    opened_at: dt.datetime
    send_before: dt.datetime
    closed_at: dt.datetime | None
    result: str
    detail: str
    request: str
    answer: Any


class ObservationOut(Schema):
    """What was learned, `times` in a row; `source` is sender (the call's answer), probe, event or person."""

    source: str
    finding: str
    conclusive: bool
    summary: str
    asked_at: dt.datetime
    at: dt.datetime
    times: int
    raw: Any


class VoteOut(Schema):
    by: str
    choice: str
    comment: str
    group: str
    channel: str
    at: dt.datetime


class AllowedOut(Schema):
    """`kind` is policy (nobody was asked), people, or standing: then `beforehand` says which and who gave it."""

    kind: str
    policy: str
    rules: list[dict[str, Any]]
    binding_digest: str
    decided_at: dt.datetime
    beforehand: str
    votes: list[VoteOut]


class VerdictOut(Schema):
    """A verdict as it was proposed for a second person to confirm; the newest of a case counts."""

    verdict: str
    evidence: str
    reference: str
    other_reference: str
    actual_minor: str | None
    by: str
    at: dt.datetime


class CaseOut(Schema):
    """`proposed` is empty where one person's verdict is enough."""

    case: str
    kind: str
    state: str
    why: str
    verdict: str
    evidence: str
    by: str
    proposed: list[VerdictOut]


class ReversalOut(Schema):
    """One proposal that the operation is undone. `run` is the one that does it, once it was started; `by` who proposed
    it and `origin` from where: operator, case, cancelled or failed (a run of that end). `result` is done, rejected,
    cancelled, failed or dropped, `what` what came of it; until then `state` says in words how it stands, and `tries`
    how often what is due failed, with the last `problem`."""

    id: uuid.UUID
    reference: str
    tool: str
    run: uuid.UUID | None
    by: str
    origin: str
    reason: str
    at: dt.datetime
    state: str
    result: str | None
    what: str
    ended_at: dt.datetime | None
    tries: int
    problem: str


class UndoneOut(ReversalOut):
    """`operation` is the one that undoes, once it was allowed, with its `outcome`; `allowed_by` policy, people or
    standing; `votes` are people's answers, also where they said no."""

    operation: uuid.UUID | None
    outcome: str | None
    allowed_by: str | None
    votes: list[VoteOut]


class UndoesOut(Schema):
    """What this operation undoes: `operation` of `run`, `reference` which of its records there."""

    operation: uuid.UUID
    run: uuid.UUID
    reference: str
    outcome: str
    by: str
    reason: str
    at: dt.datetime


class CorrectionOut(Schema):
    """`before` is what our record said until then."""

    number: int
    case: str
    source: str
    target: str
    evidence: str
    by: str
    at: dt.datetime
    before: Any


class ExplainedOut(OperationOut):
    """All there is to know about one operation; secrets are left out of what came over the wire. `undone` are the
    reversals of it that were proposed, the first first; `undoes` is what it is itself a reversal of.
    `may_be_done_anew`: it was undone, and a person allowed that the same is proposed again."""

    run: uuid.UUID
    effect: Any
    business_key: str
    may_be_done_anew: bool
    contract_version: str
    proposed_by: str
    proposed_at: dt.datetime
    allowed: AllowedOut
    attempts: list[AttemptOut]
    learned: list[ObservationOut]
    cases: list[CaseOut]
    corrections: list[CorrectionOut]
    undone: list[UndoneOut]
    undoes: UndoesOut | None
    in_words: str


class StageOut(Schema):
    """`state` is asked, later (its turn has not come) or done; `approved` of `needed` people have said yes,
    without those who are no longer entitled to while it is open."""

    name: str
    state: Literal["asked", "later", "done"]
    approved: int
    needed: int


class ApprovalOut(Schema):
    """The newest request for people's approval: `state` is the machine's, `respond_by` when the time to answer ends."""

    id: uuid.UUID
    ask: str
    state: str
    respond_by: dt.datetime
    stages: list[StageOut]


class MayOut(Schema):
    """A tool the run may use; `narrowed` says in sentences what to, fixed when the run started."""

    tool: str
    narrowed: list[str]


class RunOut(RunStarted):
    """`state` is the machine's; `waits_for` says what it waits for; `outcome` is a sentence once it is over."""

    title: str
    state: str
    state_label: str
    is_over: bool
    waits_for: str
    outcome: str
    finished_at: dt.datetime | None
    approval: ApprovalOut | None
    may: list[MayOut]
    operations: list[OperationOut]


class Fault(Schema):
    field: str
    message: str


class Problem(Schema):
    code: str
    detail: str
    faults: list[Fault] = []


class SendSignal(Schema):
    """`key` makes it once for its run; `kind` is the event: `document` is what an agent may have asked for, and a
    workflow may have events of its own, each with its own shape of `payload`."""

    model_config = ConfigDict(extra="forbid")
    key: Annotated[StrictStr, Field(pattern=KEY, description=KEY_WORDS, examples=["doc-2291"])]
    kind: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$", examples=["document"])]
    payload: Annotated[dict[str, Any], Field(default_factory=dict, max_length=50)]


class SignalOut(Schema):
    """`code` is stored, already (the same signal came before), late (the run has waited for it before; kept, and used
    only if it waits for the same again), or over (the run had ended; nothing changes)."""

    id: uuid.UUID
    code: str


class Received(Schema):
    received: bool
    first: bool


ActKey = Literal["pause", "resume", "again", "to-person", "cancel"]
Reason = Annotated[StrictStr, Field(min_length=1, max_length=2000, pattern=r"\S", examples=["billing is wrong"])]


class Because(Schema):
    """`reason` stays in the record."""

    model_config = ConfigDict(extra="forbid")
    reason: Reason


class Done(Schema):
    """`detail` says what goes on."""

    code: str
    detail: str


class OnMany(Because):
    """`runs` that this integration started; others, and those that have ended, are left out."""

    act: ActKey
    runs: Annotated[list[uuid.UUID], Field(min_length=1, max_length=2000)]


class RunResult(Schema):
    run: uuid.UUID
    code: str
    detail: str


class BatchOut(Schema):
    """`finished_at` is empty while some are left; `results` are the first 500."""

    id: uuid.UUID
    act: str
    total: int
    done: int
    refused: int
    finished_at: dt.datetime | None
    results: list[RunResult]


class FreezeThis(Because):
    """`scope` is all, workflow:NAME or tool:NAME."""

    scope: Annotated[StrictStr, Field(max_length=120, examples=["tool:billing.create_credit"])]


class FreezeOut(Schema):
    id: uuid.UUID
    scope: str
    by: str
    reason: str
    since: dt.datetime
    lifted_at: dt.datetime | None


class StandingOut(Schema):
    """`state` is in_force, used_up or ready (not begun). Amounts are minor units as text; the total and the count are
    for each `period` (whole, day, week, month; of UTC), and what is under way or not confirmed is not left."""

    id: uuid.UUID
    state: str
    tool: str
    only: dict[str, str]
    by: list[str]
    reason: str
    currency: str
    each_minor: str
    total_minor: str
    left_minor: str
    under_way_minor: str
    count: int
    count_left: int
    period: str
    starts_at: dt.datetime
    ends_at: dt.datetime
