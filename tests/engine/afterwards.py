"""What may still happen to an operation that is settled: they change their record of it, or it is undone by ours."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from reconciliation import still_allowed
from reconciliation.classification import Result
from reconciliation.models import Case, Operation
from reconciliation.services import answers, cases, execute, lookups, reversals
from runs import clock
from runs.models import Run
from runs.tools.base import Lookup, Record, Repeat
from tests.engine.history import LOST, TOO_SOON, History
from tests.engine.model_run import TIME, UNDO, allowed


class WholeLife(History):
    """One operation's life to its very end."""

    def _settled(self) -> Operation:
        found = self.operation
        assert found is not None
        return found

    @precondition(lambda self: self.state in ("succeeded", "failed") and self.receiver.effects)
    @rule(told=st.sampled_from([True, True, False]))
    def they_change_their_record(self, told: bool) -> None:
        """What stood is void now, or what was void stands again; a person hears of it, or nobody does yet."""
        [one] = self.receiver.effects
        one.void, one.pending = not one.void, False
        self.said_otherwise = not self.said_otherwise
        if told and self.said_otherwise:
            self.a_person_puts_it_right()

    @precondition(lambda self: self.state in ("succeeded", "failed") and self.said_otherwise)
    @rule()
    def a_person_puts_it_right(self) -> None:
        """They doubt our record, look there, and say what it shows."""
        TIME.tick(40)
        found = self._settled()
        result = cases.doubt(operation_id=found.pk, principal=self.actor, reason="the customer says so")
        assert result.ok, result
        asked_at = clock.now()
        lookups.record_lookup(
            operation_id=found.pk, lookup=self.receiver.look_up(asked_at=asked_at, identity=found.identity), problem="",
            asked_at=asked_at, contract=self.contract, actor=self.actor,
        )  # fmt: skip
        stands = [one.reference for one in self.receiver.standing]
        told = cases.settle(
            case_number=result.detail["case"], principal=self.actor, verdict="happened" if stands else "did_not",
            evidence="looked", reference=stands[0] if stands else "", contract=self.contract,
        )  # fmt: skip
        assert told.code in ("ok", *TOO_SOON), told
        if told.ok:
            self.said_otherwise = False

    @precondition(lambda self: self.state == "succeeded" and not self.said_otherwise)
    @precondition(lambda self: self.contract.repeat == Repeat.LOOK_UP_FIRST)  # it takes its time, and is soon reached
    @rule(lost=st.booleans())
    def it_is_undone(self, lost: bool) -> None:
        """A reversal is proposed, allowed and carried out in a run of its own; its answer may be lost."""
        operation = self._settled()
        proposed = reversals.propose(operation_id=operation.pk, principal=self.actor, reason="it was wrong")
        assert proposed.reversal is not None, proposed
        reversal = proposed.reversal
        contract = replace(UNDO, business_key=lambda effect: f"model/undo/{operation.pk}")
        made = allowed(
            contract=contract, effect=reversal.effect, actor=self.actor, start_key=f"reversal:{reversal.pk}"
        )  # fmt: skip
        reversals.link(reversal_id=reversal.pk, run=Run.objects.get(pk=made.lease.run_id))
        facts = still_allowed.Facts(
            binding_digest=made.binding, read_at=clock.now(), fresh_for=contract.settling, variables={}
        )
        opened = execute.open_attempt(
            lease=made.lease, lease_seconds=3600, proposal_id=made.proposal.pk, contract=contract, facts=facts,
            sender=self._process(), actor=self.actor,
        )  # fmt: skip
        assert isinstance(opened, execute.Opened), opened
        [effect] = self.receiver.effects
        effect.void = True
        record = Record(reference=f"undo of {effect.reference}", identity=made.proposal.identity)
        answer = LOST if lost else answers.Answer(result=Result.DONE, detail="undone", record=record)
        answers.record_answer(
            attempt_id=opened.attempt.pk, answer=answer, contract=contract, actor=self.actor
        )  # fmt: skip
        if lost:
            lookups.record_lookup(
                operation_id=opened.operation.pk, lookup=Lookup(records=(record,), pages=1), problem="",
                asked_at=clock.now(), contract=contract, actor=self.actor,
            )  # fmt: skip
        reversals.follow_up(reversal_id=reversal.pk)

    @invariant()
    def nothing_stands_of_what_was_undone(self) -> None:
        if self.state == "compensated":
            assert len(self.receiver.effects) == 1 and not self.receiver.standing, "undone, and yet something stands"

    def let_it_end(self) -> None:
        """And what they changed is known here."""
        super().let_it_end()
        if not self.said_otherwise or self._state() not in ("succeeded", "failed"):
            return
        for sender in self.senders:
            type(sender.process).objects.filter(pk=sender.process.pk).update(ended_at=clock.now())
        self.a_person_puts_it_right()
        assert not self.said_otherwise, "what they changed never became known"
        assert (self._state() == "succeeded") == bool(self.receiver.standing)
        assert not Case.objects.filter(operation=self.operation).exclude(state="resolved").exists()
        self.check()
