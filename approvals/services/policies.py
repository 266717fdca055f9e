"""Publishing a policy's next version, and finding the one that governs a tool."""

import re
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Max

from approvals import locks, rights
from approvals.models import Policy, PolicyTool, PolicyVersion
from approvals.rules import PolicyDocument, Problem, validate
from approvals.words import is_blank, storable
from runs import clock, record
from runs.canonical import digest
from runs.models import Principal
from runs.texts import one_line

NOTE_LENGTH = 4000


class PolicyInvalid(Exception):
    """The policy cannot be published; `errors` are `rules.Problem`, each with the rule, the field and the remedy."""

    def __init__(self, errors: list[Problem]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors


def publish(*, slug: str, name: str, tools: list[str], document: Any, note: str, publisher: Principal) -> PolicyVersion:
    """Put a document into force for the tools; the same document as the one in force returns that version.

    Tools stay with their policy: they may be added, never taken away. Raises PolicyInvalid.
    """
    errors = validate(document=document) + _name_problems(slug, name, note)
    if errors:
        raise PolicyInvalid(errors)
    parsed = PolicyDocument.model_validate(document)
    if parsed.policy not in ("", slug):
        raise PolicyInvalid([Problem(where="policy", field="policy", remedy=f"is {parsed.policy}; write {slug}")])
    stored = parsed.stored(policy=slug)
    with transaction.atomic(durable=True):
        Policy.objects.get_or_create(slug=slug, defaults={"name": name})
        policy = Policy.objects.select_for_update(of=("self",)).select_related("active").get(slug=slug)
        errors = _group_problems(parsed) + _tool_problems(policy, tools)
        if errors:
            raise PolicyInvalid(errors)
        PolicyTool.objects.bulk_create([PolicyTool(tool=tool, policy=policy) for tool in tools], ignore_conflicts=True)
        errors = _tool_problems(policy, tools)  # another policy may have taken one just now
        if errors:
            raise PolicyInvalid(errors)
        if policy.active is not None and policy.active.digest == digest(stored) and policy.name == name:
            return policy.active
        return _next_version(policy, name, stored, note, publisher)


def governing(*, tool: str, lock: bool = False) -> PolicyVersion | None:
    """The version in force for the tool, or None: then nothing is allowed.

    With `lock` the policy's row is held FOR SHARE, inside the caller's transaction: nobody publishes until it ends.
    """
    versions = PolicyVersion.objects.select_related("policy")
    if not lock:
        found = PolicyTool.objects.filter(tool=tool).values_list("policy__active", flat=True).first()
    else:
        found = locks.share_policy_of(tool=tool)
    return None if found is None else versions.get(pk=found)


def _next_version(policy: Policy, name: str, stored: dict[str, Any], note: str, publisher: Principal) -> PolicyVersion:
    number = (policy.versions.aggregate(last=Max("number"))["last"] or 0) + 1
    version = PolicyVersion.objects.create(
        policy=policy,
        number=number,
        rules=stored,
        digest=digest(stored),
        note=note,
        published_by=publisher,
        published_at=clock.now(),
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
    )
    return version


def _name_problems(slug: str, name: str, note: str) -> list[Problem]:
    problems = []
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) or len(slug) > 80:
        remedy = "write up to 80 small letters, digits and hyphens"
        problems.append(Problem(where="policy", field="slug", remedy=remedy))
    if is_blank(text=name) or len(name) > 120 or one_line(text=name, limit=120) != name:
        problems.append(Problem(where="policy", field="name", remedy="write one line of up to 120 characters"))
    if len(note) > NOTE_LENGTH or storable(text=note) != note.strip():
        remedy = f"write readable text of up to {NOTE_LENGTH} characters"
        problems.append(Problem(where="policy", field="note", remedy=remedy))
    return problems


def _group_problems(document: PolicyDocument) -> list[Problem]:
    """A rule that asks people who cannot answer would let every request expire."""
    problems = []
    for rule in document.rules:
        if rule.ask is None:
            continue
        group, quorum = rule.ask.group, rule.ask.quorum
        able = rights.holders(group=group)
        if not Group.objects.filter(name=group).exists():
            remedy = f"names {group}, which is not a group; name an existing one"
        elif able == 0:
            remedy = f"names {group}, in which nobody may vote; add a member who holds the right to vote"
        elif able < quorum:
            remedy = f"asks {quorum} people of {group}, in which {able} may vote; ask fewer or add members"
        else:
            continue
        problems.append(Problem(where=rule.id, field="ask.group", remedy=remedy))
    return problems


def _tool_problems(policy: Policy, tools: list[str]) -> list[Problem]:
    problems = []
    taken = PolicyTool.objects.exclude(policy=policy).filter(tool__in=tools).select_related("policy")
    for other in taken.order_by("tool"):
        remedy = f"names {other.tool}, which {other.policy.name} governs; a tool belongs to one policy"
        problems.append(Problem(where="policy", field="tools", remedy=remedy))
    for left_out in policy.tools.exclude(tool__in=tools).order_by("tool"):
        remedy = f"leaves out {left_out.tool}, which would then have no policy; list it, or write a rule that denies it"
        problems.append(Problem(where="policy", field="tools", remedy=remedy))
    if not tools or any(not 0 < len(tool) <= 80 for tool in tools):
        problems.append(Problem(where="policy", field="tools", remedy="name at least one, each up to 80 characters"))
    return problems
