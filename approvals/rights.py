"""Who may vote, read at the moment of asking: active, in the group that is asked, holding the right to vote."""

from collections.abc import Iterable

from django.contrib.auth.models import Permission, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from runs import hot

_VOTE = Permission.objects.filter(codename="vote", content_type__app_label="approvals")


def _voters() -> QuerySet[User]:
    """Active users with the right to vote, by themselves, through any group, or as a superuser."""
    own = Exists(_VOTE.filter(user=OuterRef("pk")))
    through_group = Exists(_VOTE.filter(group__user=OuterRef("pk")))
    return User.objects.filter(Q(is_superuser=True) | own | through_group, is_active=True)


def may_vote_at_all(*, user: User) -> bool:
    return _voters().filter(pk=user.pk).exists()


def holders(*, group: str) -> int:
    """How many people could answer a request to this group."""
    return _voters().filter(groups__name=group).count()


def members(*, group: str) -> list[User]:
    """Everybody who may vote on a request to this group right now."""
    return list(_voters().filter(groups__name=group).order_by("pk"))


def still_entitled(*, user_ids: Iterable[int], group: str) -> set[int]:
    """Those of the users who may vote on a request to this group right now."""
    wanted = set(user_ids)
    if len(wanted) == 1:  # most requests have one vote
        return {user.pk for user in _VOTER(user=wanted.pop(), group=group)}
    return set(_voters().filter(pk__in=wanted, groups__name=group).values_list("pk", flat=True))


_VOTER = hot.Query(lambda user, group: _voters().filter(pk=user, groups__name=group))
