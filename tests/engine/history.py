"""Random histories of one operation, by the product's own services, against a model of the other side.

Attempts are opened, answered, frozen, killed, taken over, looked up, sent again and settled by people in any order;
however it goes, there is never a second effect, none is lost, and none that may still come is called absent.
"""

import datetime as dt
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from agentops.events import process_events
from agentops.steps import settling
from agentops.steps.base import Step
from reconciliation import classification, moves, still_allowed
from reconciliation.classification import Result
from reconciliation.models import Attempt, Case, Operation, WorkerProcess
from reconciliation.models.operation import OperationState
from reconciliation.services import answers, cases, execute, lookups
from runs import clock
from runs.models import Event, Run
from runs.services import external_events, principals
from runs.tools.base import Contract, Repeat
from tests.engine.model_run import CONTRACT, EFFECT, START, TIME, allowed
from tests.engine.receiver_model import Packet, Receiver

S = OperationState
TOO_SOON = ("sender_may_wake", "resolved", "too_early", "seen_recorded", "not_asked")  # a person is told to wait
OVER = ("none", "succeeded", "failed", "abandoned", "compensated")
IN_FLIGHT = ("sending", "unknown", "accepted")
REACHABLE = st.sampled_from([True, True, True, False])
LAGS = st.sampled_from([0.0, 0.9])
LOST = answers.Answer(result=Result.AMBIGUOUS, detail="no answer")
REPEATS = st.sampled_from([Repeat.BY_IDENTITY, Repeat.BY_IDENTITY, Repeat.LOOK_UP_FIRST, Repeat.ONCE])
SEEN_EDGES: Counter[tuple[str, str]] = Counter()
Steps = list[tuple[str, dict[str, Any]]]  # rules by name, with their arguments
ANSWERED: tuple[str, dict[str, Any]] = ("a_call_is_answered", {"lag": 0.0, "at_once": True})
TAKEN_ON: tuple[str, dict[str, Any]] = ("it_is_taken_on", {"lag": 0.0, "at_once": True})
ASKED: tuple[str, dict[str, Any]] = ("it_is_asked", {"reachable": True})
CHANGED: tuple[str, dict[str, Any]] = ("they_change_their_record", {"told": True})


def _lost(how: str, lag: float = 0.0) -> tuple[str, dict[str, Any]]:
    return "a_calls_answer_is_lost", {"how": how, "lag": lag, "at_once": True}


def _refused(result: Result) -> tuple[str, dict[str, Any]]:
    return "a_call_is_refused", {"result": result, "at_once": True}


# how a life begins, before chance goes on with it: chance alone takes some edges a hundred times as often as others
OPENINGS: dict[str, Steps] = {
    "anything": [],
    "changed and changed back": [ANSWERED, CHANGED, CHANGED],
    "undone": [ANSWERED, ("it_is_undone", {"lost": False})],
    "refused": [_refused(Result.REFUSED)],
    "too many": [_refused(Result.OVERLOADED)],
    "given up": [_refused(Result.OVERLOADED), ("it_is_given_up", {})],
    "taken on and done": [TAKEN_ON, ("they_make_up_their_mind", {"stands": True}), ASKED],
    "taken on and not done": [TAKEN_ON, ("they_make_up_their_mind", {"stands": False}), ASKED],
    "taken on and given up later": [TAKEN_ON, ASKED, ("they_make_up_their_mind", {"stands": False}), ASKED],
    "lost": [_lost("made"), ASKED],
    "lost and not yet to be seen": [_lost("made", lag=0.9), ASKED],
    "never came": [_lost("dropped"), ("it_is_asked", {"reachable": True, "after": 40})],
}
OPENED = st.sampled_from(sorted(OPENINGS))


@dataclass
class Sender:
    """A worker with an attempt in hand: not called yet, or called and not yet reported."""

    process: WorkerProcess
    attempt: Attempt
    packet: Packet | None = None
    answer: answers.Answer | None = None
    checked: bool = False  # frozen between the look at the clock and the call


class History(RuleBasedStateMachine):
    """One operation's life."""

    def __init__(self) -> None:
        super().__init__()
        self.senders: list[Sender] = []
        self.state = "none"  # as it was after the last step

    @initialize(repeat=REPEATS, opening=OPENED)
    def begin(self, repeat: Repeat, opening: str = "anything") -> None:
        key = uuid.uuid4()
        self.contract: Contract = replace(CONTRACT, repeat=repeat, business_key=lambda effect: f"model/{key}")
        TIME.at = START
        self.receiver = Receiver(self.contract, TIME)
        self.actor = principals.system()
        made = allowed(contract=self.contract, effect=EFFECT, actor=self.actor)
        self.lease, self.proposal, self.binding = made.lease, made.proposal, made.binding
        self.claimer = self._process()
        self.said_otherwise = False  # they changed their record, and nobody here has been told
        assert self._open(classification.Resend.NO)
        for name, given in OPENINGS[opening]:
            getattr(self, name)(**given)

    # ---- what the rules stand on

    def _process(self) -> WorkerProcess:
        return WorkerProcess.objects.create(host="model", boot="model", pid=1, start_ticks=uuid.uuid4().int % 2**60)

    @property
    def operation(self) -> Operation | None:
        return Operation.objects.filter(proposal=self.proposal).first()

    def _state(self) -> str:
        state = Operation.objects.filter(proposal=self.proposal).values_list("state", flat=True).first()
        return "none" if state is None else str(state)

    def _open(self, resend: classification.Resend) -> bool:
        process = self._process()
        facts = still_allowed.Facts(
            binding_digest=self.binding, read_at=clock.now(), fresh_for=dt.timedelta(seconds=60), variables={}
        )
        opened = execute.open_attempt(
            lease=self.lease, lease_seconds=3600, proposal_id=self.proposal.pk, contract=self.contract, facts=facts,
            sender=process, actor=self.actor, resend=resend,
        )  # fmt: skip
        if isinstance(opened, execute.Opened):
            self.senders.append(Sender(process, opened.attempt))
            return True
        assert isinstance(opened, execute.Held), opened
        return False

    def _report(self, sender: Sender, answer: answers.Answer) -> None:
        self.senders.remove(sender)
        answers.record_answer(attempt_id=sender.attempt.pk, answer=answer, contract=self.contract, actor=self.actor)

    def _call(self, sender: Sender) -> bool:
        """Begin the call if there is still time, as the executing step does. Whoever was frozen in between calls late;
        that nobody is frozen for as long as the other side keeps its keys is taken for granted."""
        longest = sender.attempt.opened_at + self.contract.retention / 2
        if clock.now() > (longest if sender.checked else sender.attempt.send_before):
            self._report(sender, answers.Answer(result=Result.NOT_SENT, detail="too late"))
            return False
        sender.packet = self.receiver.call(identity=self.proposal.identity, wire_key=sender.attempt.wire_key)
        return True

    # ---- what may happen

    @precondition(lambda self: self.senders or self.state in IN_FLIGHT)
    @rule(seconds=st.sampled_from([1, 4, 12, 40, 40, 3000]))
    def time_passes(self, seconds: int) -> None:
        TIME.tick(seconds)

    @precondition(lambda self: not self.senders and self.state not in (*IN_FLIGHT, "authorised"))
    @rule(repeat=REPEATS, opening=OPENED)
    def it_is_over_and_another_begins(self, repeat: Repeat, opening: str) -> None:
        self.note_edges()
        self.begin(repeat, opening)

    @precondition(lambda self: self.state == "authorised")
    @rule()
    def it_is_tried_again(self) -> None:
        if (found := self.operation) is not None and found.next_attempt_at is not None:
            TIME.at = max(TIME.at, found.next_attempt_at)
        self._open(classification.Resend.NO)

    def _caller(self) -> Sender | None:
        """The first sender that has not called yet, after it began its call; None when it was too late."""
        sender = next(one for one in self.senders if one.packet is None)
        return sender if self._call(sender) else None

    def _answered(self, sender: Sender, answer: answers.Answer, *, at_once: bool) -> None:
        sender.answer = answer
        if at_once:
            self._report(sender, answer)

    @precondition(lambda self: any(one.packet is None for one in self.senders))
    @rule(lag=LAGS, at_once=st.booleans())
    def a_call_is_answered(self, lag: float, at_once: bool) -> None:
        if (sender := self._caller()) is not None and sender.packet is not None:
            found = self.receiver.deliver(sender.packet, lag=lag)
            answer = answers.Answer(result=Result.DONE, detail="made", record=found) if found else LOST
            self._answered(sender, answer, at_once=at_once)

    @precondition(lambda self: any(one.packet is None for one in self.senders))
    @rule(how=st.sampled_from(["made", "underway", "dropped"]), lag=LAGS, at_once=st.booleans())
    def a_calls_answer_is_lost(self, how: str, lag: float, at_once: bool) -> None:
        if (sender := self._caller()) is not None and sender.packet is not None:
            if how == "made":
                self.receiver.deliver(sender.packet, lag=lag)
            elif how == "dropped":
                self.receiver.drop(sender.packet)
            self._answered(sender, LOST, at_once=at_once)

    @precondition(lambda self: any(one.packet is None for one in self.senders))
    @rule(result=st.sampled_from([Result.REFUSED, Result.OVERLOADED]), at_once=st.booleans())
    def a_call_is_refused(self, result: Result, at_once: bool) -> None:
        if (sender := self._caller()) is not None and sender.packet is not None:
            self.receiver.drop(sender.packet)
            self._answered(sender, answers.Answer(result=result, detail="refused"), at_once=at_once)

    @precondition(lambda self: any(one.packet is None for one in self.senders))
    @rule()
    def no_connection_is_made(self) -> None:
        sender = next(one for one in self.senders if one.packet is None)
        self._report(sender, answers.Answer(result=Result.NOT_SENT, detail="no connection"))

    @precondition(lambda self: any(one.packet is None and not one.checked for one in self.senders))
    @rule()
    def a_sender_freezes_before_its_call(self) -> None:
        sender = next(one for one in self.senders if one.packet is None and not one.checked)
        sender.checked = clock.now() <= sender.attempt.send_before

    @precondition(lambda self: any(one.answer is not None for one in self.senders))
    @rule()
    def a_sender_reports(self) -> None:
        """At once, or after having been frozen for as long as it likes."""
        sender = next(one for one in self.senders if one.answer is not None)
        assert sender.answer is not None
        self._report(sender, sender.answer)

    @precondition(lambda self: self.senders)
    @rule()
    def a_sender_dies(self) -> None:
        sender = self.senders.pop(0)
        WorkerProcess.objects.filter(pk=sender.process.pk).update(ended_at=clock.now())

    @precondition(lambda self: any(one.ends >= TIME.at for one in self.receiver.underway))
    @rule(lag=st.sampled_from([0.0, 0.9]))
    def a_late_call_arrives(self, lag: float) -> None:
        packet = next(one for one in self.receiver.underway if one.ends >= TIME.at)
        self.receiver.deliver(packet, lag=lag)

    @precondition(lambda self: self.state == "sending")
    @rule()
    def another_worker_takes_over(self) -> None:
        found = self.operation
        assert found is not None
        answers.close_dead_attempt(operation_id=found.pk, claimer=self.claimer, actor=self.actor)

    @precondition(lambda self: self.state in ("unknown", "accepted"))
    @rule(
        reachable=st.sampled_from([True, True, True, False]), event=st.booleans(), after=st.sampled_from([0, 0, 2, 40])
    )
    def it_is_asked(self, reachable: bool, event: bool = False, after: int = 0) -> None:
        """The settling step, sooner or later: ask, and after absence send again or fail it, as the rules say."""
        TIME.tick(after)
        if event:
            self._event_arrives()
        found = self.operation
        assert found is not None
        answers.close_dead_attempt(operation_id=found.pk, claimer=self.claimer, actor=self.actor)
        asked_at = clock.now()
        lookup = self.receiver.look_up(asked_at=asked_at, identity=found.identity) if reachable else None
        observation = lookups.record_lookup(
            operation_id=found.pk, lookup=lookup, problem="" if reachable else "down", asked_at=asked_at,
            contract=self.contract, actor=self.actor,
        )  # fmt: skip
        found.refresh_from_db()
        if observation.finding == "absent" and found.state == S.UNKNOWN:
            run = Run.objects.get(pk=self.lease.run_id)
            step = Step(lease=self.lease, run=run, workflow=None, actor=self.actor)  # type: ignore[arg-type]
            settling._after_absence(step, self.proposal, found, self, observation)  # type: ignore[arg-type]

    @precondition(lambda self: any(one.packet is None for one in self.senders))
    @rule(lag=LAGS, at_once=st.booleans())
    def it_is_taken_on(self, lag: float, at_once: bool) -> None:
        """The other side answers that it has taken it on: whether it stands is still to come."""
        if (sender := self._caller()) is not None and sender.packet is not None:
            found = self.receiver.deliver(sender.packet, lag=lag, pending=True)
            answer = answers.Answer(result=Result.DONE, detail="taken on", record=found) if found else LOST
            self._answered(sender, answer, at_once=at_once)

    @precondition(lambda self: any(one.pending for one in self.receiver.effects))
    @rule(stands=st.sampled_from([True, False, False]))
    def they_make_up_their_mind(self, stands: bool) -> None:
        for one in self.receiver.effects:
            one.pending, one.void = False, one.void or (one.pending and not stands)

    @precondition(lambda self: self.state == "authorised")
    @rule()
    def it_is_given_up(self) -> None:
        with transaction.atomic(durable=True):
            found = self.operation
            assert found is not None
            run, operation = moves.lock(operation_id=found.pk)
            moves.move(run=run, operation=operation, to=S.ABANDONED, actor=self.actor, why="given up")

    def _event_arrives(self) -> None:
        thing = {"metadata": {"operation_identity": self.proposal.identity}}
        payload = {"data": {"object": thing}}
        external_events.receive(
            source="billing", event_id=uuid.uuid4().hex, kind="credit_note.created", payload=payload
        )
        before = self._state()
        process_events(limit=5)
        assert self._state() == before, "an event settles nothing"

    @precondition(lambda self: self.state in ("unknown", "accepted"))
    @rule()
    def a_person_settles_it(self) -> None:
        """As far as they can see: they say what the other side's own pages show at this moment, and do not think of
        what is still on its way."""
        found = self.operation
        assert found is not None
        if any(one.pending and one.visible_from > TIME.at for one in self.receiver.effects):
            return  # those pages say that it is not decided yet, before a lookup does
        case = Case.objects.filter(operation=found).exclude(state="resolved").first()
        if case is None:
            case = Case.objects.create(operation=found, kind=Case.Kind.NOT_CONFIRMED, why="for a person")
        assert cases.claim(case_number=case.pk, principal=self.actor).ok
        asked_at = clock.now()
        lookups.record_lookup(
            operation_id=found.pk, lookup=self.receiver.look_up(asked_at=asked_at, identity=found.identity), problem="",
            asked_at=asked_at, contract=self.contract, actor=self.actor,
        )  # fmt: skip
        made = [one.reference for one in self.receiver.standing]
        told = cases.settle(
            case_number=case.pk, principal=self.actor, verdict="happened" if made else "did_not", evidence="looked",
            reference=made[0] if made else "", contract=self.contract,
        )  # fmt: skip
        assert told.code in ("ok", "not_final", *TOO_SOON), told

    # ---- what must hold, whatever happens

    @invariant()
    def check(self) -> None:
        if not hasattr(self, "lease"):
            return
        state = self.state = self._state()
        assert len(self.receiver.effects) <= 1, "two effects of one operation"
        none_can_come = not self.receiver.may_still_arrive() and not any(
            one.packet is None and (one.checked or TIME.at <= one.attempt.send_before) for one in self.senders
        )
        if state == "succeeded":
            assert len(self.receiver.effects) == 1, "a success without an effect"
            assert not self.receiver.effects[0].pending, "a success of what is only taken on"
            found = self.operation
            assert found is not None and found.external_reference == self.receiver.effects[0].reference
        if state in ("failed", "abandoned", "none"):
            assert self.said_otherwise or not self.receiver.standing, f"{state}, and yet there is an effect"
            assert none_can_come, f"{state}, and yet one may come"
        if state == "authorised":
            assert not self.receiver.standing, "waiting for another try, and yet there is an effect"

    def teardown(self) -> None:
        if hasattr(self, "lease"):
            try:
                self.check()
                self.let_it_end()
            finally:
                self.note_edges()

    def note_edges(self) -> None:
        """Count each edge that this life has taken."""
        kinds = ["operation.state", "operation.corrected"]
        for event in Event.objects.filter(stream=f"run:{self.lease.run_id}", kind__in=kinds):
            SEEN_EDGES[event.data["source"], event.data["target"]] += 1

    def let_it_end(self) -> None:
        """Time passes, frozen senders report, everybody asks, and a person at last: then the truth is known."""
        for turn in range(40):
            if self._state() in OVER:
                break
            if self._state() == "authorised":
                self.it_is_given_up()
                break
            TIME.tick(45)
            self.they_make_up_their_mind(stands=True)
            for sender in list(self.senders):
                if sender.checked and sender.packet is None:
                    self.senders.remove(sender)
                    WorkerProcess.objects.filter(pk=sender.process.pk).update(ended_at=clock.now())
                elif sender.packet is None:
                    self._report(sender, answers.Answer(result=Result.NOT_SENT, detail="too late"))
                else:
                    assert sender.answer is not None
                    self._report(sender, sender.answer)
            if self._state() == "sending":
                self.another_worker_takes_over()
            if self._state() in ("unknown", "accepted"):
                self.it_is_asked(True)
            if turn > 3 and self._state() in ("unknown", "accepted"):
                self.a_person_settles_it()
        assert self._state() in OVER, "it never became known"
        self.check()
