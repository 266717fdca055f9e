"""Under whose name a command acts: a person with an account, whose rights are looked at as on every page."""

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from runs.models import Principal
from runs.services import principals


def acting_as(username: str) -> Principal:
    """The person's principal. Raises CommandError when there is no such active account."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise CommandError(f"--as: there is no active account {username!r}")
    return principals.of_user(user=user)


def may_not(username: str, act: str) -> str:
    """What is said of an account without the right: `act` completes "may not", as in "freeze"."""
    return f"--as: {username} may not {act}: use an account with that right. Nothing was changed."
