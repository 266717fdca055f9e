"""Who may vote, read at the moment of asking: active, in the group that is asked, holding the right to vote."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

# looked up by itself, once a statement: joined with the rest it made the planning take ten times as long as the looking
_VOTE = Subquery(Permission.objects.filter(codename="vote", content_type__app_label="approvals").values("pk")[:1])
_OWN, _OF_GROUPS = User.user_permissions.through.objects, Group.permissions.through.objects
_MEMBERSHIPS = User.groups.through.objects


def voters() -> QuerySet[User]:
    """Active users with the right to vote, by themselves, through any group, or as a superuser."""
    own = Exists(_OWN.filter(user=OuterRef("pk"), permission=_VOTE))
    allowed = _OF_GROUPS.filter(permission=_VOTE).values("group")
    through_group = Exists(_MEMBERSHIPS.filter(user=OuterRef("pk"), group__in=allowed))
    return User.objects.filter(Q(is_superuser=True) | own | through_group, is_active=True)


def may_vote_at_all(*, user: User) -> bool:
    return voters().filter(pk=user.pk).exists()


def holders(*, groups: Iterable[str]) -> int:
    """How many people could answer a request to these groups."""
    return voters().filter(groups__name__in=set(groups)).distinct().count()


def still_entitled(*, user_ids: Iterable[int], group: str) -> set[int]:
    """Those of the users who may vote as members of the group right now."""
    return set(voters().filter(pk__in=set(user_ids), groups__name=group).values_list("pk", flat=True))
