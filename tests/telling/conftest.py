"""People with addresses, and moments that have come."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User

from approvals.services import telling
from tests.approvals import world


def person(name: str, **fields: Any) -> User:
    return world.user(name, email=f"{name}@agentops.example", **fields)


def spread() -> int:
    return telling.spread(limit=100)


@pytest.fixture
def later(owner: psycopg.Connection) -> Callable[..., None]:
    """Let time go by for what waits to be told, by moving its stored times back."""

    def go(**by: float) -> None:
        gone = dt.timedelta(**by)
        for table in ("approvals_notice", "approvals_delivery"):
            owner.execute(
                f"UPDATE {table} SET created_at = created_at - %(by)s, due_at = due_at - %(by)s,"
                " lease_until = lease_until - %(by)s WHERE ended_at IS NULL",
                {"by": gone},
            )
        owner.execute("UPDATE approvals_endpoint SET not_before = not_before - %s", [gone])

    return go
