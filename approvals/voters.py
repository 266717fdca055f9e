"""Those who may vote at all right now, with their groups and what is set about them. Reads only."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet, TextField
from django.db.models.functions import Cast

from approvals import rights
from runs import hot


class Sum(Protocol):
    """What is looked at of a proposal: its currency and minor units, where it has any."""

    @property
    def currency(self) -> str: ...
    @property
    def amount_minor(self) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An active person with the right to vote, and what is set about them; limits by currency in minor units."""

    user: User
    groups: frozenset[str]
    team: str = ""
    region: str = ""
    limits: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        return self.user.get_full_name() or self.user.get_username()

    def within(self, proposal: Sum) -> bool:
        limit = dict(self.limits).get(proposal.currency)
        return limit is not None and proposal.amount_minor is not None and proposal.amount_minor <= limit


def known(*, user_ids: Iterable[int] = (), groups: Iterable[str] = ()) -> dict[int, Known]:
    """Those of the users, or of all members of the groups, who may vote at all right now, by id."""
    ids, names = sorted(set(user_ids)), sorted(set(groups))
    users = [*(_BY_ID(users=ids) if ids else ()), *(_IN_GROUPS(names=names) if names else ())]
    return {user.pk: _known(user) for user in sorted(users, key=lambda one: one.pk)}


def _with_what_is_set(users: QuerySet[User]) -> QuerySet[User]:
    """With their groups' names and their remit."""
    groups = ArraySubquery(Group.objects.filter(user=OuterRef("pk")).order_by("name").values("name"))
    return users.annotate(
        in_groups=groups, team=F("remit__team"), region=F("remit__region"), limits=Cast("remit__limits", TextField())
    )


_BY_ID = hot.Query(
    lambda users: _with_what_is_set(rights.voters().filter(hot.among(column="auth_user.id", kind="int", values=users)))
)
_MEMBERSHIPS = User.groups.through.objects
_IN_GROUPS = hot.Query(
    lambda names: _with_what_is_set(
        rights.voters().filter(
            pk__in=_MEMBERSHIPS.filter(
                group__in=Group.objects.filter(hot.among(column="name", kind="text", values=names))
            ).values("user")
        )
    )
)


def _known(user: Any) -> Known:
    """Of a user as read by one of those."""
    limits = json.loads(user.limits) if user.limits else {}
    return Known(
        user=user,
        groups=frozenset(user.in_groups),
        team=user.team or "",
        region=user.region or "",
        limits=tuple(sorted((currency, int(minor)) for currency, minor in limits.items())),
    )
