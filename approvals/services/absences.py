"""Who stands in for whom, and what is set about people who answer. Each is one durable transaction, under the locks of
the people concerned, whom a vote holds as well: what a vote has seen of them holds until it is over."""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from approvals import rights as voting
from approvals.models import Absence, Remit
from runs import clock, record, rights
from runs.money import Money
from runs.services import principals
from runs.texts import typed

ARRANGE = "approvals.arrange_absence"
TOPIC = "absences"
LONGEST = dt.timedelta(days=366)
NOTE_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsenceResult:
    """`code` is ok, or a refusal: no_right, no_such_person, nobody_else, own_stand_in, cannot_vote, away_too,
    overlaps, backwards, over, too_long, too_far, note_too_long, no_such_absence, ended_before, own_remit."""

    code: str
    absence: Absence | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def arrange(
    *, person_id: int, stand_in_id: int, begins: dt.datetime, ends: dt.datetime, note: str, by: User
) -> AbsenceResult:
    """Let `stand_in` answer for `person` from `begins` until `ends`; one's own, or with the right to arrange others'.

    Who stands in holds the right to vote by themselves, and is not away with a stand-in of their own meanwhile: it
    goes no further than one person. Nobody makes themselves the stand-in of another.
    """
    note = typed(text=note)
    with transaction.atomic(durable=True):
        actor = principals.of_user(user=by)
        held = _hold([person_id, stand_in_id, by.pk])
        if (code := _objection(held, person_id, stand_in_id, begins, ends, note, by)) is not None:
            return AbsenceResult(code=code)
        made = Absence.objects.create(
            person_id=person_id,
            stand_in_id=stand_in_id,
            begins=begins,
            ends=ends,
            note=note,
            made_by=actor,
            made_at=clock.now(),
        )
        record.append_system(
            topic=TOPIC,
            kind="absence.arranged",
            actor=actor,
            absence=str(made.pk),
            person=principals.of_user(user=held[person_id]).key,
            stand_in=principals.of_user(user=held[stand_in_id]).key,
            begins=begins.isoformat(),
            ends=ends.isoformat(),
            note=note,
        )
        return AbsenceResult(code="ok", absence=made)


def _hold(user_ids: list[int]) -> dict[int, User]:
    """The people's rows, by their id: whoever votes as one of them, or for one, waits."""
    wanted = sorted(set(user_ids))
    # no_key: whoever writes a row that names them, such as a notice, needs not wait
    return {user.pk: user for user in User.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")}


def _objection(
    held: dict[int, User], person_id: int, stand_in_id: int, begins: dt.datetime, ends: dt.datetime, note: str, by: User
) -> str | None:
    now = clock.now()
    if not _may(by, person_id):
        return rights.NO_RIGHT
    if person_id not in held or stand_in_id not in held:
        return "no_such_person"
    if person_id == stand_in_id:
        return "nobody_else"
    if stand_in_id == by.pk:
        return "own_stand_in"
    if ends <= begins:
        return "backwards"
    if ends <= now:
        return "over"
    if ends - begins > LONGEST:
        return "too_long"
    if begins > now + LONGEST:
        return "too_far"
    if len(note) > NOTE_LENGTH:
        return "note_too_long"
    able = set(voting.voters().filter(pk__in=[person_id, stand_in_id]).values_list("pk", flat=True))
    if able != {person_id, stand_in_id}:
        return "cannot_vote"
    meanwhile = Absence.objects.filter(ended_at__isnull=True, begins__lt=ends, ends__gt=begins)
    if meanwhile.filter(person=person_id).exists():
        return "overlaps"
    return "away_too" if meanwhile.filter(person=stand_in_id).exists() else None


def _may(by: User, person_id: int) -> bool:
    """One's own with an active account, anybody's with the right; read under the lock of one's own row."""
    fresh = User.objects.filter(pk=by.pk, is_active=True).first()
    return fresh is not None and (fresh.pk == person_id or fresh.has_perm(ARRANGE))


def end(*, absence_id: uuid.UUID, by: User) -> AbsenceResult:
    """End it at once, or call it off: one's own, or with the right to arrange others'. Votes given stay."""
    with transaction.atomic(durable=True):
        actor = principals.of_user(user=by)
        found = Absence.objects.filter(pk=absence_id).first()
        if found is None:
            return AbsenceResult(code="no_such_absence")
        _hold([found.person_id, found.stand_in_id, by.pk])
        found = Absence.objects.select_for_update(of=("self",)).get(pk=absence_id)
        if not _may(by, found.person_id):
            return AbsenceResult(code=rights.NO_RIGHT)
        now = clock.now()
        if found.ended_at is not None or found.ends <= now:
            return AbsenceResult(code="ended_before", absence=found)
        found.ended_at, found.ended_by = now, actor
        found.save(update_fields=["ended_at", "ended_by"])
        record.append_system(topic=TOPIC, kind="absence.ended", actor=actor, absence=str(found.pk))
        return AbsenceResult(code="ok", absence=found)


def set_remit(*, user_id: int, team: str, region: str, limits: dict[str, Money], by: User) -> AbsenceResult:
    """Set what is known of a person who answers; with the right to arrange, and never one's own."""
    with transaction.atomic(durable=True):
        actor = principals.of_user(user=by)
        held = _hold([user_id, by.pk])
        if user_id not in held:
            return AbsenceResult(code="no_such_person")
        if user_id == by.pk or not _may_set(by):
            return AbsenceResult(code="own_remit" if user_id == by.pk else rights.NO_RIGHT)
        stored = {currency: money.minor for currency, money in sorted(limits.items())}
        Remit.objects.update_or_create(
            user_id=user_id, defaults={"team": typed(text=team), "region": typed(text=region), "limits": stored}
        )
        record.append_system(
            topic="remits",
            kind="remit.set",
            actor=actor,
            person=principals.of_user(user=held[user_id]).key,
            team=typed(text=team),
            region=typed(text=region),
            limits={currency: str(minor) for currency, minor in stored.items()},
        )
        return AbsenceResult(code="ok")


def _may_set(by: User) -> bool:
    fresh = User.objects.filter(pk=by.pk, is_active=True).first()
    return fresh is not None and fresh.has_perm(ARRANGE)
