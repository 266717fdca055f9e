"""Handing a stage on to somebody else who may answer it, and adding a person who has to approve as well.

Neither decides anything: whoever satisfies a stage may answer it as before, and everybody's part in the run is looked
at again when they vote. Each is one durable transaction; a refusal is returned.
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction

from approvals import locks, objections, seating, voters
from approvals.involvement import involved
from approvals.models import ApprovalRequest, Stage
from approvals.services import requests
from approvals.voters import Known
from approvals.words import is_blank
from runs import clock, record, rights
from runs.models import Principal
from runs.services import principals
from runs.texts import typed

PERMISSION = "approvals.reassign"
REASON_LENGTH = 2000
MOST_ADDED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HandingResult:
    """`code` is ok, or a refusal: no_right, closed, reason_needed, reason_too_long, no_such_stage, not_asked,
    no_such_person, no_such_group, named_person, does_not_fit, has_part, has_answered, cannot_vote, there_already,
    too_many, needed_elsewhere (`stage` would have too few people left)."""

    code: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    request: ApprovalRequest
    stages: list[Stage]
    people: dict[int, Known]
    out: frozenset[int]  # who has a part in the run
    heard: frozenset[int]  # who has answered, or for whom somebody has


def hand_on(*, request_id: uuid.UUID, stage_id: uuid.UUID, to: User | Group, reason: str, by: User) -> HandingResult:
    """Let the stage wait for that person, or that group's members, from now on. Raises ApprovalRequest.DoesNotExist."""
    with transaction.atomic(durable=True):
        actor = principals.of_user(user=by)
        reason, request = typed(text=reason), requests.lock_with_run(request_id=request_id)
        _hold(by, to)
        if (code := _may_not(request, actor, by, "hand_on", reason)) is not None:
            return HandingResult(code=code)
        table = _read(request, to)
        stage = next((one for one in table.stages if one.pk == stage_id), None)
        if stage is None or not stage.is_asked:
            return HandingResult(code="no_such_stage" if stage is None else "not_asked")
        if (code := _unfit(table, stage, to)) is not None:
            return HandingResult(code=code, detail={"to": _name(to), "stage": stage.name})
        stage.handed_user = to if isinstance(to, User) else None
        stage.handed_group = to if isinstance(to, Group) else None
        stage.save(update_fields=["handed_user", "handed_group"])
        record.append(
            run=request.run,
            kind="request.handed_on",
            actor=actor,
            request=str(request.pk),
            stage=stage.name,
            stage_id=str(stage.pk),
            to=_name(to),
            why=reason,
        )
        return HandingResult(code="ok", detail={"to": _name(to), "stage": stage.name})


def add_approver(*, request_id: uuid.UUID, person: User, reason: str, by: User) -> HandingResult:
    """One more person, by name, has to approve. Raises ApprovalRequest.DoesNotExist."""
    with transaction.atomic(durable=True):
        actor = principals.of_user(user=by)
        reason, request = typed(text=reason), requests.lock_with_run(request_id=request_id)
        _hold(by, person)
        if (code := _may_not(request, actor, by, "add_approver", reason)) is not None:
            return HandingResult(code=code)
        table = _read(request, person)
        added = [stage for stage in table.stages if stage.added_by_id is not None]
        code = _unable(table, person)
        if code is None and any(stage.person_id == person.pk for stage in added):
            code = "there_already"
        if code is None and len(added) >= MOST_ADDED:
            code = "too_many"
        if code is not None:
            return HandingResult(code=code, detail={"to": _name(person)})
        stage = Stage(
            request=request,
            position=max(one.position for one in table.stages) + 1,
            name=_name(person)[:150],
            person=person,
            quorum=1,
            added_by=actor,
            added_why=reason,
            opened_at=clock.now(),
        )
        if (short := _made_short(table, stage)) is not None:
            return HandingResult(code="needed_elsewhere", detail={"to": stage.name, "stage": short.name})
        stage.save()
        record.append(
            run=request.run,
            kind="request.added",
            actor=actor,
            request=str(request.pk),
            stage=stage.name,
            stage_id=str(stage.pk),
            to=stage.name,
            why=reason,
        )
        return HandingResult(code="ok", detail={"to": stage.name})


def _hold(by: User, to: User | Group) -> None:
    """The rows of both at once, in the order in which everybody takes them."""
    locks.share_users(
        user_ids=[by.pk, to.pk] if isinstance(to, User) else [by.pk],
        groups=[to.name] if isinstance(to, Group) else [],
    )


def _name(to: User | Group) -> str:
    return to.name if isinstance(to, Group) else to.get_full_name() or to.get_username()


def _may_not(request: ApprovalRequest, actor: Principal, by: User, act: str, reason: str) -> str | None:
    """Who has a part in the run does not choose who looks at it."""
    run = request.run
    if rights.objection(run=run, principal=actor, permission=PERMISSION, act=act, request=str(request.pk)):
        return rights.NO_RIGHT
    if objections.involvement(run=run, user=by) is not None:
        return "own_request"
    if objections.closed(request=request, run=run, user=by, now=clock.now()) is not None:
        return "closed"
    if is_blank(text=reason):
        return "reason_needed"
    return "reason_too_long" if len(reason) > REASON_LENGTH else None


def _read(request: ApprovalRequest, to: User | Group) -> _Table:
    ids = [to.pk] if isinstance(to, User) else []
    groups = [to.name] if isinstance(to, Group) else []
    people = voters.known(user_ids=ids, groups=groups)
    heard = {
        user_id
        for vote in seating.votes_of(request=request)
        for user_id in (vote.principal.user_id, vote.counts_for)
        if user_id is not None
    }
    return _Table(
        request=request,
        stages=seating.stages_of(request=request),
        people=people,
        out=frozenset(involved(run=request.run, user_ids=people)),
        heard=frozenset(heard),
    )


def _unable(table: _Table, person: User) -> str | None:
    if person.pk not in table.people:
        return "cannot_vote"
    if person.pk in table.out:
        return "has_part"
    return "has_answered" if person.pk in table.heard else None


def _made_short(table: _Table, stage: Stage) -> Stage | None:
    """Everybody answers once: who is added may be one without whom another stage cannot have its people."""
    request, votes = table.request, seating.votes_of(request=table.request)
    if seating.short_of(request=request, stages=table.stages, votes=votes) is not None:
        return None  # it was before
    short = seating.short_of(request=request, stages=[stage, *table.stages], votes=votes)
    return None if short is None else short.stage


def _unfit(table: _Table, stage: Stage, to: User | Group) -> str | None:
    """Nobody is handed what they could not answer: that would leave it waiting for nobody."""
    if stage.person_id is not None:
        return "named_person"
    if isinstance(to, User) and (code := _unable(table, to)) is not None:
        return code
    able = [
        one
        for one in table.people.values()
        if one.user.pk not in table.out | table.heard
        and seating.fits(stage=stage, person=one, proposal=table.request.proposal)
    ]
    return None if able else "does_not_fit"
