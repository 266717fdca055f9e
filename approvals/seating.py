"""Who may answer in which stage of a request, in their own right or for somebody who is away. Reads only."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from django.contrib.auth.models import User
from django.db.models import BooleanField, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from approvals import places, rights
from approvals.involvement import involved
from approvals.models import Absence, ApprovalRequest, Stage, Vote
from approvals.requirement import Answered
from approvals.voters import Known, Sum, known
from runs import clock, hot
from runs.services import principals

MOST_COVERED = 20  # people one person stands in for at a time


Unfit = Literal["person", "group", "team", "region", "limit"]


def unfit(*, stage: Stage, person: Known, proposal: Sum) -> Unfit | None:
    """Why the person is none whom the stage asks; None where they are. What is not set about them meets nothing."""
    if stage.person_id is not None:
        return None if person.user.pk == stage.person_id else "person"
    need = stage.need.person
    if person.groups.isdisjoint(stage.every_group):
        return "group"
    if need.team not in ("", person.team):
        return "team"
    if need.region not in ("", person.region):
        return "region"
    return "limit" if need.within_limit and not person.within(proposal) else None


def fits(*, stage: Stage, person: Known, proposal: Sum) -> bool:
    """Whether the person is one whom the stage asks."""
    return unfit(stage=stage, person=person, proposal=proposal) is None


def stands(
    *, voter: int | None, holder: int | None, people: Mapping[int, Known], fitting: Callable[[Known], bool]
) -> bool:
    """Whether a word counts still: its voter may vote, and the one whose right it is, is whom its stage asks."""
    own = people.get(holder or 0)
    return voter in people and own is not None and fitting(own)


def stages_for(*, person: Known) -> Q:
    """The same as `fits`, as a condition on stages that the database looks up."""
    names = sorted(person.groups)
    within = Q(conditions__within_limit__isnull=True)
    for currency, minor in person.limits:
        within |= Q(request__proposal__currency=currency, request__proposal__amount_minor__lte=minor)
    of_groups = Q(groups__has_any_keys=names) | Q(also__has_any_keys=names)
    return Q(person_id=person.user.pk) | (
        Q(person__isnull=True) & of_groups & _set_or_free("team", person.team) & _set_or_free("region", person.region)
        & within
    )  # fmt: skip


def _set_or_free(name: str, value: str) -> Q:
    free = Q(**{f"conditions__{name}__isnull": True})
    return free | Q(**{f"conditions__{name}": value}) if value else free


def handed_to(*, person: Known) -> Q:
    """Stages that wait for this person as far as handing on goes; what waits for somebody who may not answer any more,
    waits for everybody."""
    nobody = Q(handed_user__isnull=True, handed_group__isnull=True)
    # no EXISTS, which would be planned as a join with everybody
    still = rights.voters().filter(pk=OuterRef("handed_user")).order_by().values(yes=Value(True))[:1]
    gone = Q(handed_user__isnull=False) & ~Q(Coalesce(Subquery(still), Value(False), output_field=BooleanField()))
    left = rights.voters().filter(groups=OuterRef("handed_group")).order_by().values(yes=Value(True))[:1]
    gone |= Q(handed_group__isnull=False) & ~Q(Coalesce(Subquery(left), Value(False), output_field=BooleanField()))
    return nobody | Q(handed_user=person.user.pk) | Q(handed_group__name__in=sorted(person.groups)) | gone


def is_handed_to(*, stage: Stage, person: Known) -> bool:
    """The same for one stage; `handed_group` is read where it is set."""
    if stage.handed_user_id is None and stage.handed_group is None:
        return True
    group = stage.handed_group
    return stage.handed_user_id == person.user.pk or (group is not None and group.name in person.groups)


def covered(*, user: User) -> list[int]:
    """The ids of those for whom the person stands in now."""
    return covered_by(user_ids=[user.pk]).get(user.pk, [])


def covered_by(*, user_ids: Iterable[int]) -> dict[int, list[int]]:
    """The same for several, by who stands in."""
    people: dict[int, set[int]] = {}
    for one in _STAND_INS(users=sorted(set(user_ids))):
        people.setdefault(one.stand_in_id, set()).add(one.person_id)
    return {stand_in: sorted(away)[:MOST_COVERED] for stand_in, away in people.items()}


_STAND_INS = hot.Query(
    lambda users: Absence.objects.filter(
        hot.among(column="stand_in_id", kind="int", values=users),
        ended_at__isnull=True,
        begins__lte=clock.ClockTimestamp(),
        ends__gt=clock.ClockTimestamp(),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A stage in which the person may answer; `instead_of` whom they answer for."""

    stage: Stage
    instead_of: Known | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """One request as one person finds it: its stages and votes, and what is known of everybody concerned."""

    request: ApprovalRequest
    user: User
    stages: Sequence[Stage]
    votes: Sequence[Vote]
    people: dict[int, Known]
    covered: Sequence[int]

    @property
    def own_vote(self) -> Vote | None:
        return next((vote for vote in self.votes if vote.principal.user_id == self.user.pk), None)

    @property
    def vote_instead(self) -> Vote | None:
        """Somebody who stood in for the person has answered."""
        return next((vote for vote in self.votes if vote.instead_of and vote.instead_of.user_id == self.user.pk), None)

    def seats(self) -> list[Seat]:
        """In every stage, asked now or not; the person's own first."""
        if self.user.pk not in self.people:
            return []
        proposal = self.request.proposal
        own = self.people[self.user.pk]
        found = [Seat(stage=one) for one in self.stages if fits(stage=one, person=own, proposal=proposal)]
        for user_id in self.covered:
            if (away := self.people.get(user_id)) is not None:
                found += [
                    Seat(stage=one, instead_of=away)
                    for one in self.stages
                    if fits(stage=one, person=away, proposal=proposal)
                ]
        return found

    def free(self) -> list[Seat]:
        """Those in which an answer would count now: the stage is asked, and whose right it is has not answered."""
        heard = {user_id for vote in self.votes for user_id in (vote.principal.user_id, vote.counts_for)}
        return [
            seat
            for seat in self.seats()
            if seat.stage.is_asked and (seat.instead_of is None or seat.instead_of.user.pk not in heard)
        ]

    def yes(self, stage: Stage) -> int:
        """People who said yes in the stage and are entitled to it still."""
        return sum(1 for vote in self._counting(stage) if vote.choice == Vote.Choice.APPROVE)

    def no(self, stage: Stage) -> int:
        return sum(1 for vote in self.votes if vote.stage_id == stage.pk and vote.choice == Vote.Choice.REJECT)

    @property
    def counted(self) -> list[Vote]:
        """Every yes that counts, in the order in which they were given."""
        by_id = {stage.pk: stage for stage in self.stages}
        yes = [vote for vote in self.votes if vote.choice == Vote.Choice.APPROVE]
        return [vote for vote in yes if self.counts(vote, by_id[vote.stage_id])]

    @property
    def refusing(self) -> list[Vote]:
        """Every no, in the order in which they were given."""
        return [vote for vote in self.votes if vote.choice == Vote.Choice.REJECT]

    def _counting(self, stage: Stage) -> list[Vote]:
        return [vote for vote in self.votes if vote.stage_id == stage.pk and self.counts(vote, stage)]

    def counts(self, vote: Vote, stage: Stage) -> bool:
        proposal = self.request.proposal
        return stands(
            voter=vote.principal.user_id,
            holder=vote.counts_for,
            people=self.people,
            fitting=lambda one: fits(stage=stage, person=one, proposal=proposal),
        )

    @property
    def answered(self) -> list[Answered]:
        """The stages of the policy, without those that people added."""
        return [
            Answered(need=one.need, yes=self.yes(one), also=self._also(one))
            for one in self.stages
            if one.added_by_id is None
        ]

    def _also(self, stage: Stage) -> tuple[str, ...]:
        """The groups, asked as well by an escalation, without which not every yes would count."""
        yes = [vote for vote in self._counting(stage) if vote.choice == Vote.Choice.APPROVE]
        holders = [self.people[vote.counts_for or 0] for vote in yes]
        beyond = [one.groups.intersection(stage.also) for one in holders if one.groups.isdisjoint(stage.groups)]
        return tuple(sorted(set[str]().union(*beyond)))

    @property
    def in_order(self) -> bool:
        return any(stage.in_turn for stage in self.stages)

    @property
    def yes_in_all(self) -> int:
        return sum(self.yes(stage) for stage in self.stages)

    @property
    def needed_in_all(self) -> int:
        return sum(stage.quorum for stage in self.stages)


def stages_of(*, request: ApprovalRequest) -> list[Stage]:
    return _STAGES(request=request.pk)


_STAGES = hot.Query(lambda request: Stage.objects.filter(request=request).order_by("position"))
_VOTES = hot.Query(lambda request: Vote.objects.filter(request=request).order_by("at", "id"))


def votes_of(*, request: ApprovalRequest) -> list[Vote]:
    found = _VOTES(request=request.pk)
    for vote in found:
        vote.principal = principals.by_id(principal_id=vote.principal_id)
        if vote.instead_of_id is not None:
            vote.instead_of = principals.by_id(principal_id=vote.instead_of_id)
    return found


def of(
    *,
    request: ApprovalRequest,
    user: User,
    stages: Sequence[Stage] | None = None,
    votes: Sequence[Vote] | None = None,
    only: Iterable[int] | None = None,
) -> Seating:
    """Read it now; `only` are the ones whom the person may stand in for (those whose rows are locked)."""
    stages = stages_of(request=request) if stages is None else stages
    votes = votes_of(request=request) if votes is None else votes
    wanted = None if only is None else set(only)
    away = set() if wanted == set() else set(covered(user=user))
    if wanted is not None:
        away &= wanted
    if away:
        away -= involved(run=request.run, user_ids=away)
    heard = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for) if user_id is not None}
    people = known(user_ids={user.pk, *heard, *away})
    return Seating(request=request, user=user, stages=stages, votes=votes, people=people, covered=sorted(away))


def of_voters(*, request: ApprovalRequest, stages: Sequence[Stage], votes: Sequence[Vote]) -> Seating:
    """The same for nobody in particular: what the votes there are count for."""
    heard = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for) if user_id is not None}
    return Seating(
        request=request, user=User(), stages=stages, votes=votes, people=known(user_ids=heard), covered=()
    )  # fmt: skip


def asked_now(*, request: ApprovalRequest, stages: Sequence[Stage], votes: Sequence[Vote]) -> list[tuple[Stage, Known]]:
    """Everybody who is asked in an open stage and has not answered: with the stages, in the order of those. A stage
    handed on to people of whom none is left to answer asks all whom it asks otherwise."""
    open_stages = [stage for stage in stages if stage.is_asked]
    groups = {name for stage in open_stages for name in stage.every_group}
    named = {stage.person_id for stage in open_stages if stage.person_id is not None}
    people = known(user_ids=named, groups=groups)
    heard = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for)}
    out = heard | involved(run=request.run, user_ids=people)
    found: list[tuple[Stage, Known]] = []
    for stage in open_stages:
        able = [
            person
            for person in people.values()
            if person.user.pk not in out and fits(stage=stage, person=person, proposal=request.proposal)
        ]
        handed = [person for person in able if is_handed_to(stage=stage, person=person)]
        found += [(stage, person) for person in handed or able]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A stage that could not have its people: how many it still needs, how many of these there are beside those whom
    the stages before it need, and how many could answer it at all."""

    stage: Stage
    needed: int
    there: int
    able: int


def short_of(
    *,
    request: ApprovalRequest,
    stages: Sequence[Stage],
    votes: Sequence[Vote],
    yes: tuple[User, Seat] | None = None,
    without: User | None = None,
) -> Short | None:
    """A stage that could not have its people even if everybody answered who may: each answers once, in one stage.
    `yes` is somebody's approval that is counted as if it were there; `without` somebody who will have a part in it."""
    seated = of_voters(request=request, stages=stages, votes=votes)
    groups = {name for stage in stages for name in stage.every_group}
    named = {stage.person_id for stage in stages if stage.person_id is not None}
    people = known(user_ids=named, groups=groups)
    heard = {user_id for vote in votes for user_id in (vote.principal.user_id, vote.counts_for)}
    out = heard | involved(run=request.run, user_ids=people)
    if without is not None:
        out.add(without.pk)
    if yes is not None:
        out |= {yes[0].pk, yes[1].instead_of.user.pk if yes[1].instead_of else yes[0].pk}
    free = [one for one in people.values() if one.user.pk not in out]
    able = [
        [one.user.pk for one in free if fits(stage=stage, person=one, proposal=request.proposal)] for stage in stages
    ]
    needed = [
        stage.quorum - seated.yes(stage) - (yes is not None and yes[1].stage.pk == stage.pk) for stage in stages
    ]  # fmt: skip
    found = places.lacking(needed=[max(number, 0) for number in needed], able=able)
    if found is None:
        return None
    return Short(stage=stages[found.place], needed=found.needed, there=found.there, able=found.able)


def stand_ins(*, user_ids: Iterable[int], now: dt.datetime) -> dict[int, list[User]]:
    """Who stands in for each of them at that moment."""
    found: dict[int, list[User]] = {}
    current = Absence.objects.filter(person__in=set(user_ids), ended_at__isnull=True, begins__lte=now, ends__gt=now)
    for absence in current.select_related("stand_in").order_by("begins"):
        found.setdefault(absence.person_id, []).append(absence.stand_in)
    return found


def choose(*, seated: Seating) -> Seat:
    """Their own right before somebody else's; of several stages the one that the fewest others could answer in; but
    none with which another stage could not have its people any more, as long as there is one without."""
    free = seated.free()
    if len(free) == 1:
        return free[0]
    asked = asked_now(request=seated.request, stages=seated.stages, votes=seated.votes)
    others = Counter(stage.pk for stage, _ in asked)
    free.sort(
        key=lambda seat: (
            seat.instead_of is not None, others[seat.stage.pk] - seat.stage.quorum, seat.stage.position,
        )
    )  # fmt: skip
    return next((seat for seat in free if leaves_short(seated=seated, seat=seat) is None), free[0])


def leaves_short(*, seated: Seating, seat: Seat) -> Stage | None:
    """The stage that could not have its people any more if the person said yes there."""
    if len(seated.stages) == 1:
        return None
    short = partial(short_of, request=seated.request, stages=seated.stages, votes=seated.votes)
    left = short(yes=(seated.user, seat))
    return None if left is None or short() is not None else left.stage


def through(*, seat: Seat, seated: Seating) -> str:
    """The membership that gave the right, or that they were named."""
    if seat.stage.person_id is not None:
        return "named"
    holder = seat.instead_of or seated.people[seated.user.pk]
    return next(name for name in seat.stage.every_group if name in holder.groups)
