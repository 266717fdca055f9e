"""A yes against what the product really runs beside it, many rounds: a worker whose run's time is over, a worker that
finds a fact changed, a person who cancels with the worker that carries it out.

The rounds are led to where the yes meets the other side, and as many more to where what follows meets it. However a
round goes, the request ends once, the run's state agrees with that, and only what was approved is sent, once.
"""

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db.models import F

from agentops import engine, policy_now
from agentops.bench import measure, plain
from agentops.workflows.registry import WORKFLOWS
from approvals.confirming import Given
from approvals.models import ApprovalRequest, Decision, Refusal
from approvals.services import requests, votes
from approvals.services.votes import VoteResult
from reconciliation.models import Operation
from reconciliation.services import execute
from runs.models import Event, Evidence, Run
from runs.services import operate, principals
from runs.tools.base import Reading, Record
from runs.tools.registry import TOOLS
from tests.approvals import rounds, world

ENDINGS = ("approved", "rejected", "expired", "withdrawn", "superseded", "stale", "revoked", "spent")


@dataclass
class Outside:
    """The other side of the plain workflow: the version of its one fact, and how often each call was made."""

    version: str = "1"
    calls: Counter[str] = field(default_factory=Counter)

    def was_sent(self, yes: VoteResult, other: Any) -> bool:
        return self.calls[yes.request.proposal.identity] > 0


@pytest.fixture
def outside(manager: User, monkeypatch: pytest.MonkeyPatch) -> Outside:
    there = Outside()

    class Versioned(plain.Plain):
        def gather(self, *, data: dict[str, Any]) -> list[Reading]:
            return [replace(one, version=there.version) for one in super().gather(data=data)]

    class Counted(plain.KeepNote):
        def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
            there.calls[identity] += 1
            return super().send(effect=effect, identity=identity, wire_key=wire_key)

    monkeypatch.setitem(WORKFLOWS, plain.NAME, {"1": Versioned()})
    monkeypatch.setitem(TOOLS, plain.NOTE_CONTRACT.name, Counted)
    monkeypatch.setattr(execute, "START_WITHIN", dt.timedelta(minutes=5))  # on a slow machine too, a call is made
    return there


def asked() -> tuple[list[ApprovalRequest], list[ApprovalRequest]]:
    """Twice as many open requests as there are rounds, of runs that a worker has brought to the question."""
    for run_id in Run.objects.filter(subject__in=measure.submit(count=2 * rounds.FEWER)).values_list("pk", flat=True):
        engine.advance(run_id=run_id)
    found = list(ApprovalRequest.objects.filter(state="open").select_related("proposal"))
    assert len(found) == 2 * rounds.FEWER
    return found[::2], found[1::2]


def say_yes(request: ApprovalRequest, *, who: User) -> VoteResult:
    """As the page says it, and then a worker for the run that it woke."""
    said = votes.cast(
        request_id=request.pk,
        user=who,
        choice="approve",
        comment="",
        page_digest=request.page_digest,
        acknowledged=False,
        authenticated_by="password",
        channel="page",
        reevaluate=policy_now.verdict,
        given=Given(),
    )
    engine.advance(run_id=request.run_id)
    return said


def accepted(yes: VoteResult, other: Any) -> bool:
    return yes.accepted


def raced(
    over: list[ApprovalRequest],
    yes: rounds.Side,
    other: rounds.Side,
    *,
    first_won: rounds.FirstWon,
    before: rounds.Before = rounds.nothing,
) -> list[rounds.Round]:
    """Either side won at least once, on whatever machine: the lead grows until it does."""
    played = rounds.race(over, yes, other, first_won=first_won, before=before)
    rounds.met(played, share=1 / 2)
    assert {first_won(one.first, one.second) for one in played} == {True, False}
    return played


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a round may come to: `events` are the endings of its request, `runs` the states its run may be in then,
    `calls` how often what it asks for was sent, `following` how many open requests take its place."""

    events: list[str]
    runs: tuple[str, ...]
    calls: int = 0
    following: int = 0


SENT = End(events=["request.approved", "request.spent"], runs=("completed",), calls=1)


def each_agrees(played: list[rounds.Round], outside: Outside, **ends: End) -> None:
    """Every round came to one of these ends as a whole, by its request's state. Whatever is due after the rounds is
    worked off first."""
    for one in played:
        assert 0 in [engine.advance(run_id=one.request.run_id) for _ in range(3)]
    found = rounds.ends(played, *[f"request.{state}" for state in ENDINGS])
    for one in played:
        request, stored, said = one.request, found[one.request.pk], one.first
        assert stored.state in ends
        end, run = ends[stored.state], Run.objects.get(pk=request.run_id)
        assert stored.events == end.events
        assert stored.decisions == [True] * said.accepted == [True] * (end.events[0] == "request.approved")
        assert stored.votes == len(stored.decisions)
        assert run.state in end.runs, (stored, run.state, run.waits_for, run.person_reason)
        assert outside.calls[request.proposal.identity] == end.calls
        assert list(Operation.objects.filter(run=run).values_list("state", flat=True)) == ["succeeded"] * end.calls
        following = ApprovalRequest.objects.filter(run=run, state="open").values_list("supersedes", flat=True)
        assert list(following) == [request.pk] * end.following
        refused = Refusal.objects.filter(request=request).values_list("code", flat=True)
        assert list(refused) == [said.code] * (not said.accepted)
    assert outside.calls.total() == sum(ends[one.state].calls for one in found.values())
    assert not Event.objects.filter(kind="run.step_failed").exists()


def test_approve_against_a_worker_when_the_time_is_over(
    manager: User, outside: Outside, owner: psycopg.Connection
) -> None:
    """The deadline falls between the two; or it has passed, and the late yes and the worker both find that out."""

    def ends_in(request: ApprovalRequest, seconds: float) -> None:
        times = {"left": dt.timedelta(seconds=seconds), "request": request.pk, "run": request.run_id}
        with owner.transaction():
            owner.execute(
                "UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() + %(left)s WHERE id = %(request)s",
                times,
            )
            owner.execute("UPDATE runs_run SET wake_at = clock_timestamp() + %(left)s WHERE id = %(run)s", times)

    def work(request: ApprovalRequest) -> None:
        """As workers do, until the request is closed, by whomever."""
        while ApprovalRequest.objects.filter(pk=request.pk, state="open").exists():
            engine.advance(run_id=request.run_id)

    def before_the_worker(yes: VoteResult, other: Any) -> bool:
        kinds = ("request.approved", "request.refused", "request.expired")
        first = Event.objects.filter(stream=f"run:{yes.request.run_id}", kind__in=kinds).earliest("seq")
        return first.kind != "request.expired"

    yes = partial(say_yes, who=manager)
    in_time, too_late = asked()
    played = raced(in_time, yes, work, first_won=accepted, before=lambda one, later: ends_in(one, max(0.0, -later)))
    played += raced(too_late, yes, work, first_won=before_the_worker, before=lambda one, later: ends_in(one, 0.0))
    expired = End(events=["request.expired"], runs=("needs_person",))
    each_agrees(played, outside, spent=SENT, expired=expired)
    assert {one.first.code for one in played} == {"approved", "expired"}
    assert not Decision.objects.filter(decided_at__gte=F("request__respond_by")).exists()


def test_approve_against_a_worker_that_finds_a_fact_changed(
    manager: User, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes that comes too late is refused; one that came in time is not used for what has changed since."""

    def first_version(request: ApprovalRequest, later: float) -> None:
        outside.version = "1"

    def change(request: ApprovalRequest) -> None:
        outside.version = "2"
        engine.advance(run_id=request.run_id)

    yes = partial(say_yes, who=manager)
    first, second = asked()
    monkeypatch.setattr(requests, "_old", lambda run: True)
    for request in [*first, *second]:  # somebody opened the page after a while, so the facts are to be read again
        requests.record_viewing(request_id=request.pk, user=manager)
    played = raced(first, yes, change, first_won=accepted, before=first_version)
    played += raced(second, yes, change, first_won=outside.was_sent, before=first_version)
    anew = End(events=["request.superseded"], runs=("awaiting_approval",), following=1)
    unused = replace(anew, events=["request.approved", "request.stale"])
    outside.version = "2"
    each_agrees(played, outside, spent=SENT, stale=unused, superseded=anew)
    found = rounds.ends(played, "request.approved", "evidence.read")
    for one in played:
        assert one.first.code in ("approved", "out_of_date", "superseded")
        after_asking = found[one.request.pk].events[1:]
        assert after_asking[0] == ("request.approved" if one.first.accepted else "evidence.read")
    assert not Evidence.objects.filter(run__operations__isnull=False, version="2").exists()


def test_approve_against_a_cancel_and_the_worker_that_carries_it_out(manager: User, outside: Outside) -> None:
    """A cancel always counts, short of what is being sent; where it was first there is no yes after it."""
    boss = principals.of_user(user=world.user("boss", group="", is_superuser=True))

    def cancel(request: ApprovalRequest) -> str:
        told = operate.cancel(run_id=request.run_id, principal=boss, reason="no longer wanted")
        engine.advance(run_id=request.run_id)
        return told.code

    yes = partial(say_yes, who=manager)
    first, second = asked()
    played = raced(first, yes, cancel, first_won=accepted)
    played += raced(second, yes, cancel, first_won=outside.was_sent)
    unasked = End(events=["request.withdrawn"], runs=("cancelled",))
    unused = replace(unasked, events=["request.approved", "request.revoked"])
    sent = replace(SENT, runs=("completed", "cancelled"))
    each_agrees(played, outside, spent=sent, revoked=unused, withdrawn=unasked)
    runs = {run.pk: run for run in Run.objects.all()}
    found = rounds.ends(played, "request.approved", "attempt.opened", "run.cancel_requested")
    for one in played:
        run, was_sent = runs[one.request.run_id], outside.was_sent(one.first, one.second)
        told = ["request.approved"] * one.first.accepted + ["attempt.opened"] * was_sent
        assert found[one.request.pk].events == told + ["run.cancel_requested"] * (one.second == "ok")
        assert one.second == ("over" if run.state == "completed" else "ok")
        assert one.first.code in ("approved", "cancelled")
        assert ("Done before, and staying" in run.outcome) is (was_sent and run.state == "cancelled")
