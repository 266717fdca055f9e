"""Making a policy's first version when the product is set up, and finding the version that governs a tool.

Every further version takes two people: see `services.drafts` and `services.publishing`.
"""

import uuid
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import Max

from approvals import locks, policy_checks
from approvals.models import Policy, PolicyDraft, PolicyTool, PolicyVersion
from approvals.rules import PolicyDocument, Problem, validate
from runs import clock, record
from runs.canonical import digest
from runs.models import Principal


class PolicyInvalid(Exception):
    """The policy cannot be published; `errors` are `rules.Problem`, each with the rule, the field and the remedy."""

    def __init__(self, errors: list[Problem]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors


class SecondPersonNeeded(PolicyInvalid):
    """There is a version in force already: one person writes the next on the policy's page, another publishes it."""


def publish(*, slug: str, name: str, tools: list[str], document: Any, note: str, publisher: Principal) -> PolicyVersion:
    """Put a first version in force for the tools; the very same again returns the version in force.

    Raises PolicyInvalid; SecondPersonNeeded, which is recorded, when the policy has a version and this differs from it.
    """
    errors = validate(document=document) + policy_checks.name_problems(slug=slug, name=name)
    errors += policy_checks.note_problems(note=note)
    if errors:
        raise PolicyInvalid(errors)
    parsed = PolicyDocument.model_validate(document)
    if parsed.policy not in ("", slug):
        raise PolicyInvalid([Problem(where="policy", field="policy", remedy=f"is {parsed.policy}; write {slug}")])
    stored = parsed.stored(policy=slug)
    with transaction.atomic(durable=True):
        Policy.objects.get_or_create(slug=slug, defaults={"name": name})
        policy = Policy.objects.select_for_update(of=("self",)).select_related("active").get(slug=slug)
        if policy.active is None:
            check_and_take_tools(policy=policy, parsed=parsed, tools=tools)
            return next_version(policy=policy, name=name, stored=stored, note=note, publisher=publisher)
        refusal = _differs(policy, policy.active, name, tools, digest(stored), publisher)
    if refusal is not None:
        raise SecondPersonNeeded([refusal])
    return policy.active


def _differs(
    policy: Policy, active: PolicyVersion, name: str, tools: list[str], wanted: str, publisher: Principal
) -> Problem | None:
    """Nothing when everything is as it is already; else the refusal, recorded."""
    had = set(policy.tools.values_list("tool", flat=True))
    if active.digest == wanted and policy.name == name and set(tools) == had:
        return None
    refused = {"act": "publish", "code": "second_person_needed", "policy": policy.slug, "digest": wanted}
    record.append_system(topic="policies", kind="policy.refused", actor=publisher, **refused)
    remedy = (
        f"is {active.number} already; every further version takes two people: one writes it on the page"
        f" /policies/{policy.slug}/, and another publishes it there"
    )
    return Problem(where="policy", field="version", remedy=remedy)


def governing(*, tool: str, lock: bool = False) -> PolicyVersion | None:
    """The version in force for the tool, or None: then nothing is allowed.

    With `lock` the policy's row is held FOR SHARE, inside the caller's transaction: nobody publishes until it ends.
    """
    if not lock:
        found = PolicyTool.objects.filter(tool=tool).values_list("policy__active", flat=True).first()
    else:
        found = locks.share_policy_of(tool=tool)
    return None if found is None else _version(found)


@lru_cache(maxsize=256)
def _version(version_id: uuid.UUID) -> PolicyVersion:
    """Versions never change; their policy's name changes only with a newer one."""
    return PolicyVersion.objects.select_related("policy").get(pk=version_id)


def check_and_take_tools(*, policy: Policy, parsed: PolicyDocument, tools: list[str]) -> None:
    """Put the tools under the policy, inside the caller's transaction with the policy locked. Raises PolicyInvalid."""
    errors = policy_checks.group_problems(document=parsed) + policy_checks.tool_problems(policy=policy, tools=tools)
    errors += policy_checks.condition_tools(document=parsed, tools=tools)
    if errors:
        raise PolicyInvalid(errors)
    PolicyTool.objects.bulk_create([PolicyTool(tool=tool, policy=policy) for tool in tools], ignore_conflicts=True)
    errors = policy_checks.tool_problems(policy=policy, tools=tools)  # another policy may have taken one just now
    if errors:
        raise PolicyInvalid(errors)


def next_version(
    *,
    policy: Policy,
    name: str,
    stored: dict[str, Any],
    note: str,
    publisher: Principal,
    draft: PolicyDraft | None = None,
    **recorded: Any,
) -> PolicyVersion:
    """Write the version, put it in force and record it, inside the caller's transaction with the policy locked."""
    number = (policy.versions.aggregate(last=Max("number"))["last"] or 0) + 1
    version = PolicyVersion.objects.create(
        policy=policy,
        number=number,
        rules=stored,
        digest=digest(stored),
        note=note,
        published_by=publisher,
        published_at=clock.now(),
        draft=draft,
    )
    policy.name, policy.active = name, version
    policy.save(update_fields=["name", "active"])
    record.append_system(
        topic="policies",
        kind="policy.published",
        actor=publisher,
        policy=policy.slug,
        number=number,
        digest=version.digest,
        note=note,
        **recorded,
    )
    return version
