"""Locks that Django has no words for: rows read FOR SHARE, always in the order of their keys.

Whoever changes a user, a membership, a group's rights or a policy must wait for these, and these wait for them; so a
right or a rule that was withdrawn before a decision is seen by it.
"""

import uuid
from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db import connection


def share_users(*, user_ids: Iterable[int], groups: Iterable[str]) -> None:
    """Hold the users' rows (which stand for their memberships) and the groups' names until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM {User._meta.db_table} WHERE id = ANY(%s::int[]) ORDER BY id FOR SHARE",
            [sorted(set(user_ids))],
        )
        cursor.execute(
            f"SELECT id FROM {Group._meta.db_table} WHERE name = ANY(%s) ORDER BY id FOR SHARE",
            [sorted(set(groups))],
        )


def share_policy_of(*, tool: str) -> uuid.UUID | None:
    """Hold the policy that governs the tool; the id of its active version, as it is once the lock is held."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.active_id FROM approvals_policy p JOIN approvals_policytool t ON t.policy_id = p.id"
            " WHERE t.tool = %s FOR SHARE OF p",
            [tool],
        )
        row = cursor.fetchone()
    return None if row is None else row[0]
