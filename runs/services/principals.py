"""Principals are made once and found by key ever after."""

from django.contrib.auth.models import User

from runs.models import Principal

SYSTEM_KEY = "system:agentops"


def find_or_make(*, kind: Principal.Kind, key: str, label: str) -> Principal:
    """The principal with that key (never a person: those come from `of_user`)."""
    if kind == Principal.Kind.PERSON:
        raise ValueError("a person's principal comes from the user, by of_user")
    return Principal.objects.get_or_create(key=key, defaults={"kind": kind, "label": label})[0]


def of_user(*, user: User) -> Principal:
    """The person's principal; the label follows the user's name when first made."""
    return Principal.objects.get_or_create(
        user=user,
        defaults={
            "kind": Principal.Kind.PERSON,
            "key": f"person:{user.pk}",
            "label": user.get_full_name() or user.get_username(),
        },
    )[0]


def system() -> Principal:
    return find_or_make(kind=Principal.Kind.SYSTEM, key=SYSTEM_KEY, label="System")
