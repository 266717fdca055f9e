"""What each group of people may do. The literal map; `ensure_groups` writes it to the database."""

from django.contrib.auth.models import Group, Permission
from django.db import transaction

_SEE_WORK = (
    "runs.view_run",
    "approvals.view_approvalrequest",
    "approvals.view_policy",
    "reconciliation.view_operation",
    "reconciliation.view_case",
)

GROUPS: dict[str, tuple[str, ...]] = {
    "manager": (*_SEE_WORK, "approvals.vote", "approvals.reassign", "approvals.publish_policy"),
    "support": (*_SEE_WORK, "runs.operate_run", "approvals.freeze"),
    "admin": (
        *_SEE_WORK,
        "runs.operate_run",
        "approvals.freeze",
        "reconciliation.settle_case",
        "approvals.edit_policy",
        "approvals.publish_policy",
        "approvals.change_endpoint",
        "approvals.reassign",
        "approvals.arrange_absence",
    ),
}


@transaction.atomic(durable=True)
def ensure_groups() -> dict[str, Group]:
    """Make the groups where they are missing and give them their permissions; takes none away."""
    groups: dict[str, Group] = {}
    for name, wanted in GROUPS.items():
        group, _ = Group.objects.get_or_create(name=name)
        for full in wanted:
            app, _, codename = full.partition(".")
            group.permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
        groups[name] = group
    return groups
