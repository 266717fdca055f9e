"""The demo world's people and policies, made once."""

from django.contrib.auth.models import User
from django.db import transaction

from agentops.demo.world import PASSWORD, PEOPLE
from agentops.permissions import ensure_groups
from approvals.seed_policies import SEEDS
from approvals.services import policies
from runs.services import principals


def ensure_people() -> dict[str, User]:
    """Everybody of the demo world, by user name, each in one group. Existing users are left as they are."""
    groups = ensure_groups()
    found: dict[str, User] = {}
    for one in PEOPLE:
        with transaction.atomic(durable=True):
            user = User.objects.filter(username=one.username).first()
            if user is None:
                user = User.objects.create_user(
                    username=one.username,
                    password=PASSWORD,
                    first_name=one.first_name,
                    last_name=one.last_name,
                    email=f"{one.username}@agentops.example",
                )
                user.groups.add(groups[one.group])
                principals.of_user(user=user)
            found[one.username] = user
    return found


def ensure_policies() -> None:
    """The seeded policies, published where they are missing; a newer version of a person's is left in force."""
    for seed in SEEDS:
        if all(policies.governing(tool=tool) is None for tool in seed.tools):
            policies.publish(
                slug=seed.slug,
                name=seed.name,
                tools=list(seed.tools),
                document=seed.document,
                note=seed.note,
                publisher=principals.system(),
            )
