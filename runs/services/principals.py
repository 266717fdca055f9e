"""Principals are made once and found by key ever after."""

import uuid
from functools import lru_cache

from django.contrib.auth.models import User
from django.db import connection

from runs import hot
from runs.models import Principal, Run

SYSTEM_KEY = "system:agentops"


def find_or_make(*, kind: Principal.Kind, key: str, label: str) -> Principal:
    """The principal with that key (never a person: those come from `of_user`)."""
    if kind == Principal.Kind.PERSON:
        raise ValueError("a person's principal comes from the user, by of_user")
    if connection.in_atomic_block:  # it might still be undone
        return _of_key(key) or _make(kind, key, label)
    return _kept(hot.database(), kind, key, label)


@lru_cache(maxsize=256)
def _kept(database: str, kind: Principal.Kind, key: str, label: str) -> Principal:
    return _of_key(key) or _make(kind, key, label)


def _of_key(key: str) -> Principal | None:
    return _OF_KEY.first(key=key)


def _make(kind: Principal.Kind, key: str, label: str) -> Principal:
    return Principal.objects.get_or_create(key=key, defaults={"kind": kind, "label": label})[0]


_OF_KEY = hot.Query(lambda key: Principal.objects.filter(key=key))


def of_user(*, user: User) -> Principal:
    """The person's principal; the label follows the user's name when first made."""
    if (known := _OF_USER.first(user=user.pk)) is not None:
        return known
    return Principal.objects.get_or_create(
        user=user,
        defaults={
            "kind": Principal.Kind.PERSON,
            "key": f"person:{user.pk}",
            "label": user.get_full_name() or user.get_username(),
        },
    )[0]


_OF_USER = hot.Query(lambda user: Principal.objects.filter(user=user))


def system() -> Principal:
    """The system itself. Kept by each process once it is seen outside a transaction, which might still be undone."""
    if connection.in_atomic_block:
        return find_or_make(kind=Principal.Kind.SYSTEM, key=SYSTEM_KEY, label="System")
    return _system(hot.database())


@lru_cache(maxsize=2)
def _system(database: str) -> Principal:
    return find_or_make(kind=Principal.Kind.SYSTEM, key=SYSTEM_KEY, label="System")


@lru_cache(maxsize=4096)
def _by_id(principal_id: uuid.UUID) -> Principal:
    return Principal.objects.get(pk=principal_id)


def by_id(*, principal_id: uuid.UUID) -> Principal:
    """A principal whose row stands: it never changes, so it is read once."""
    return _by_id(principal_id)


def known(*, run: Run) -> Run:
    """Give the run its three principals, which never change, without asking the database for them each time."""
    run.agent, run.run_as, run.initiator = _by_id(run.agent_id), _by_id(run.run_as_id), _by_id(run.initiator_id)
    return run
