"""Whether there are people enough for what is asked, or would be. Reads only."""

import json
import uuid
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import BooleanField, Case, Q, QuerySet, TextField, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from approvals import places, rights, seating, voters
from approvals.involvement import involved_among
from approvals.models import ApprovalRequest, Stage, Vote
from approvals.seating import Short
from runs import hot
from runs.models import Principal, Proposal

NOBODY = "somebody who may answer"  # how what a run waits for begins, while there are too few such people
ENOUGH = 20  # members that are looked for at once


def _free(group: str, run: uuid.UUID, initiator: uuid.UUID, run_as: uuid.UUID, agent: uuid.UUID) -> QuerySet[User]:
    part = Principal.objects.filter(
        Q(pk=initiator) | Q(pk=run_as) | Q(pk=agent) | Q(pk__in=Proposal.objects.filter(run=run).values("proposer")),
        user__isnull=False,
    )
    found = rights.voters().filter(groups__name=group).exclude(pk__in=part.values("user_id"))
    return found.order_by("pk")[:ENOUGH]


_FREE = hot.Query(_free)


def missing(
    *,
    request: ApprovalRequest,
    stages: Sequence[Stage],
    votes: Sequence[Vote] = (),
    escalating: Iterable[str] = (),
) -> Short | None:
    """A stage that could not have its people if everybody answered who may, those included whom an escalation to the
    groups `escalating` will ask; None while there are enough. The request need not be stored."""
    if len(stages) == 1 and not votes and _plainly_enough(request, stages[0]):
        return None
    return seating.short_of(request=request, stages=_with(stages, escalating), votes=votes)


def _plainly_enough(request: ApprovalRequest, stage: Stage) -> bool:
    """One statement for what nearly all rules ask: so many of a group, whoever they are."""
    if stage.person_id is not None or stage.conditions or len(stage.groups) != 1:
        return False
    run = request.run
    free = _FREE(
        group=stage.groups[0], run=run.pk, initiator=run.initiator_id, run_as=run.run_as_id, agent=run.agent_id
    )
    return len(free) >= stage.quorum


def _with(stages: Sequence[Stage], escalating: Iterable[str]) -> list[Stage]:
    """An escalation asks every stage but the people added by name."""
    more, found = list(escalating), []
    for stage in stages:
        one = copy(stage)
        if one.person_id is None:
            one.also = [*stage.also, *more]
        found.append(one)
    return found


class _Kind(NamedTuple):
    """Whom a stage asks, as its columns hold it; what is JSON, as text."""

    groups: str
    also: str
    conditions: str
    person_id: int | None

    def stage(self) -> Stage:
        groups, also, conditions = map(json.loads, (self.groups, self.also, self.conditions))
        return Stage(groups=groups, also=also, conditions=conditions, person_id=self.person_id)


class _Place(NamedTuple):
    """A stage of a request: `kind` is the number of its kind, `asked` whether it takes answers: None before its turn,
    False once it is met."""

    position: int
    quorum: int
    kind: int
    asked: bool | None


class _Sum(NamedTuple):
    """How much is proposed, if any."""

    currency: str
    amount_minor: int | None


class _Word(NamedTuple):
    """A vote: in which stage, and the users by id who gave it, and for whom where that is somebody else."""

    position: int
    choice: str
    voter: int | None
    away: int | None

    @property
    def holder(self) -> int | None:
        return self.voter if self.away is None else self.away


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of open requests, those that are `short` of people, whatever took these, and those `moved` on: a stage has its
    people by the votes there are and is not met, or is met and has lost them. For these the votes are counted again."""

    short: set[uuid.UUID]
    moved: set[uuid.UUID]


def look(*, requests: Mapping[uuid.UUID, uuid.UUID]) -> Found:
    """Of the open requests, given with their runs: `short` is the same that `missing` says of each, without an
    escalation to come; for all of them in a few statements."""
    ids = hot.array(ids=requests)
    numbers: dict[_Kind, int] = {}
    stages = defaultdict(list)
    for request, position, quorum, asked, *kind in _STAGES.filter(_of("approvals_stage", ids)).values_list(*_STAGE):
        stages[request].append(_Place(position, quorum, numbers.setdefault(_Kind(*kind), len(numbers)), asked))
    words = defaultdict(list)
    for request, *word in Vote.objects.filter(_of("approvals_vote", ids)).order_by("pk").values_list(*_VOTE):
        words[request].append(_Word(*word))
    judge = _Judge(kinds=list(numbers), words=[one for found in words.values() for one in found])
    limited = {number for kind, number in numbers.items() if kind.conditions != "{}"}
    money = _money(pk for pk, found in stages.items() if any(one.kind in limited for one in found))
    part = involved_among(runs=requests.values(), user_ids=judge.people)
    found = Found(short=set(), moved=set())
    for pk, places_ in stages.items():
        said, amount = words.get(pk, ()), money.get(pk, ("", None))
        if judge.is_short(places_, said, part.get(requests[pk], ()), *amount):
            found.short.add(pk)
        if said and judge.has_moved(places_, said, *amount):
            found.moved.add(pk)
    return found


_STAGES = Stage.objects.order_by("request_id", "position").annotate(
    of_groups=Cast("groups", TextField()),
    of_also=Cast("also", TextField()),
    on=Cast("conditions", TextField()),
    asked=Case(When(opened_at=None, then=None), default=Q(met_at=None), output_field=BooleanField(null=True)),
)
_STAGE = ("request_id", "position", "quorum", "asked", "of_groups", "of_also", "on", "person_id")
_VOTE = ("request_id", "stage__position", "choice", "principal__user_id", "instead_of__user_id")


def _of(table: str, requests: str, column: str = "request_id") -> RawSQL:
    return hot.among(column=f"{table}.{column}", kind="uuid", values=requests)


def _money(requests: Iterable[uuid.UUID]) -> dict[uuid.UUID, tuple[str, int | None]]:
    """The currency and minor units of what is proposed, by request."""
    if not (ids := list(requests)):
        return {}
    found = ApprovalRequest.objects.filter(_of("approvals_approvalrequest", hot.array(ids=ids), "id")).order_by()
    sums = found.values_list("pk", "proposal__currency", "proposal__amount_minor")
    return {pk: (currency, minor) for pk, currency, minor in sums}


class _Judge:
    """Says of requests whether they are short of people: once for all of which it takes the same to say it."""

    def __init__(self, *, kinds: Iterable[_Kind], words: Iterable[_Word]) -> None:
        self._stages = [kind.stage() for kind in kinds]
        named = {one.person_id for one in self._stages if one.person_id is not None}
        heard = {pk for one in words for pk in (one.voter, one.holder) if pk is not None}
        groups = {name for one in self._stages for name in one.every_group}
        self.people = voters.known(user_ids=named | heard, groups=groups)
        self._limits: dict[str, list[int]] = defaultdict(list)
        for currency, minor in sorted({limit for one in self.people.values() for limit in one.limits}):
            self._limits[currency].append(minor)
        self._fitting = cache(self._who_fits)
        self._short = cache(self._find_short)
        self._moved = cache(self._find_moved)

    def is_short(
        self,
        stages: Iterable[_Place],
        words: Iterable[_Word],
        part: Iterable[int],
        currency: str,
        minor: int | None,
    ) -> bool:
        """`part` are who has a part in the run."""
        return self._short(tuple(stages), tuple(words), frozenset(part), currency, self._covering(currency, minor))

    def has_moved(self, stages: Iterable[_Place], words: Iterable[_Word], currency: str, minor: int | None) -> bool:
        return self._moved(tuple(stages), tuple(words), currency, self._covering(currency, minor))

    def _covering(self, currency: str, minor: int | None) -> int | None:
        """The least limit that covers it: all amounts with the same one are covered by the same people. None where
        nobody's does, as where no amount is proposed."""
        limits = self._limits.get(currency, [])
        place = len(limits) if minor is None else bisect_left(limits, minor)
        return limits[place] if place < len(limits) else None

    def _find_short(
        self,
        stages: tuple[_Place, ...],
        words: tuple[_Word, ...],
        part: frozenset[int],
        currency: str,
        minor: int | None,
    ) -> bool:
        out = part.union(*((one.voter, one.holder) for one in words))
        needed = [max(one.quorum - self._yes(one, words, currency, minor), 0) for one in stages]
        able = [self._fitting(one.kind, currency, minor) - out for one in stages]
        return places.lacking(needed=needed, able=able) is not None

    def _find_moved(
        self, stages: tuple[_Place, ...], words: tuple[_Word, ...], currency: str, minor: int | None
    ) -> bool:
        turned = [one for one in stages if one.asked is not None]
        return any((self._yes(one, words, currency, minor) >= one.quorum) == one.asked for one in turned)

    def _yes(self, stage: _Place, words: tuple[_Word, ...], currency: str, minor: int | None) -> int:
        """How many of them are a yes in the stage that counts still."""
        fit = self._fitting(stage.kind, currency, minor)
        yes = [one for one in words if one.position == stage.position and one.choice == Vote.Choice.APPROVE]
        return sum(self._stands(one, fit) for one in yes)

    def _who_fits(self, number: int, currency: str, minor: int | None) -> frozenset[int]:
        like, stage = _Sum(currency, minor), self._stages[number]
        return frozenset(pk for pk, one in self.people.items() if seating.fits(stage=stage, person=one, proposal=like))

    def _stands(self, word: _Word, fit: frozenset[int]) -> bool:
        return seating.stands(
            voter=word.voter, holder=word.holder, people=self.people, fitting=lambda one: one.user.pk in fit
        )
