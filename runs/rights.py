"""Whether somebody may act, read at the moment of the act: a right lost since the page was loaded no longer counts."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from runs import record
from runs.models import ApiToken, Principal, Run

# the product itself, as its own tests and jobs act; an integration, an agent or a workflow never stands for a person
_NEEDS_NO_RIGHT = frozenset({Principal.Kind.SYSTEM})
NO_RIGHT = "no_right"
# all that a token may ever be made to allow: what stops and restarts work, never what approves or settles
_OF_TOKENS = frozenset({"runs.operate_run", "approvals.freeze"})


def entitled(*, principal: Principal, permission: str) -> bool:
    """Active and holding `permission` (`app.codename`) as the database has it now. A machine has no rights here, but
    for an integration with a live token that was made to operate."""
    if principal.kind in _NEEDS_NO_RIGHT:
        return True
    if principal.kind == Principal.Kind.INTEGRATION and permission in _OF_TOKENS:
        return ApiToken.objects.filter(principal=principal, may_operate=True, revoked_at__isnull=True).exists()
    if principal.user_id is None:
        return False
    user = User.objects.filter(pk=principal.user_id, is_active=True).first()  # a fresh object: no cached permissions
    return user is not None and user.has_perm(permission)


def hold(*, principals: Iterable[Principal]) -> None:
    """Hold the users of several people FOR SHARE, by id, before any of them is looked at."""
    ids = [one.user_id for one in principals if one.user_id is not None]
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {User._meta.db_table} WHERE id = ANY(%s) ORDER BY id FOR SHARE", [ids])


def entitled_held(*, principal: Principal, permission: str) -> bool:
    """The same inside a transaction, with the answer held until it ends: the user's row, which stands for their
    memberships, is read FOR SHARE, so whoever takes the right away either waits or is seen here."""
    hold(principals=[principal])
    return entitled(principal=principal, permission=permission)


def objection(*, run: Run, principal: Principal, permission: str, act: str, **about: Any) -> str:
    """`no_right`, recorded in the run's stream, when the principal may not do `act` now; else nothing.

    Inside the caller's transaction, run locked.
    """
    if entitled_held(principal=principal, permission=permission):
        return ""
    record.append(run=run, kind="act.refused", actor=principal, act=act, code=NO_RIGHT, permission=permission, **about)
    return NO_RIGHT
