"""Lists that a person keeps under a name, for themselves alone."""

import uuid

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from approvals.models import SavedView
from approvals.words import is_blank, storable
from runs import clock

MOST = 30  # views a person
NAME_LENGTH, QUERY_LENGTH = 60, 1000


def of(*, user: User) -> QuerySet[SavedView]:
    """The person's views, the oldest first."""
    return SavedView.objects.filter(user=user, removed_at__isnull=True).order_by("created_at", "id")


def save(*, user: User, name: str, query: str, is_default: bool) -> str:
    """Keep the list under that name, in place of one that has it already; "" when it is kept, else what to do first, in
    a sentence. `query` is a list as `lists.Listing.query` writes it. One durable transaction."""
    name = " ".join(storable(text=name).split())
    if is_blank(text=name) or len(name) > NAME_LENGTH:
        return f"Name: give the view one of at most {NAME_LENGTH} letters."
    if len(query) > QUERY_LENGTH:
        return "Filters: these are too many to keep; take some away."
    with transaction.atomic(durable=True):
        kept = list(_locked(user))
        same = next((one for one in kept if one.name == name), None)
        if same is None and len(kept) >= MOST:
            return f"You keep {MOST} views already; remove one first."
        if is_default:
            SavedView.objects.filter(pk__in=[one.pk for one in kept], is_default=True).update(is_default=False)
        if same is None:
            SavedView.objects.create(user=user, name=name, query=query, is_default=is_default)
        else:
            SavedView.objects.filter(pk=same.pk).update(query=query, is_default=is_default)
    return ""


def open_with(*, user: User, view_id: uuid.UUID | None) -> bool:
    """Let the list of approvals open with that view, or with none; False when the person has no such view. One durable
    transaction."""
    with transaction.atomic(durable=True):
        kept = [one.pk for one in _locked(user)]
        if view_id is not None and view_id not in kept:
            return False
        SavedView.objects.filter(pk__in=kept, is_default=True).update(is_default=False)
        if view_id is not None:
            SavedView.objects.filter(pk=view_id).update(is_default=True)
    return True


def remove(*, user: User, view_id: uuid.UUID) -> bool:
    """Take the view away; False when the person has no such view (any more). One durable transaction."""
    with transaction.atomic(durable=True):
        return bool(of(user=user).filter(pk=view_id).order_by().update(removed_at=clock.now()))


def _locked(user: User) -> QuerySet[SavedView]:
    """All of the person's views, held, as is the person: two saves of one person come one after the other."""
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
    return of(user=user)
