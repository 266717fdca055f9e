"""Publishing as the product does it, for tests: the first version by the system, every further one by two people."""

from typing import Any

from django.contrib.auth.models import Permission, User

from approvals.models import Policy, PolicyVersion
from approvals.rules import PolicyDocument
from approvals.services import drafts, policies, publishing
from runs.models import Principal
from runs.services import principals


def editor(name: str, *rights: str) -> Principal:
    """A person with the rights (edit_policy and publish_policy by default), made once."""
    user, made = User.objects.get_or_create(username=name, defaults={"first_name": name.title(), "password": "!"})
    if made:
        wanted = rights or ("edit_policy", "publish_policy")
        user.user_permissions.add(*Permission.objects.filter(codename__in=wanted, content_type__app_label="approvals"))
    return principals.of_user(user=user)


def publish(*, slug: str, name: str, tools: list[str], document: Any, note: str) -> PolicyVersion:
    """Put the document in force, whatever is in force now; the very same again is no new version."""
    policy = Policy.objects.filter(slug=slug).select_related("active").first()
    if policy is None or policy.active is None:
        return policies.publish(
            slug=slug, name=name, tools=tools, document=document, note=note, publisher=principals.system()
        )
    had = set(policy.tools.values_list("tool", flat=True))
    if PolicyDocument.model_validate(document).stored(policy=slug) == policy.active.rules and set(tools) == had:
        return policy.active
    writer, second = editor("writes-policies"), editor("publishes-policies")
    draft = drafts.start(slug=slug, principal=writer).draft
    assert draft is not None
    written = drafts.Written(document=document, tools=tools, note=note or "for the test")
    saved = drafts.save(draft_id=draft.pk, principal=writer, revision=1, written=written)
    assert saved.code == "ok", saved.problems
    asked = drafts.ask(draft_id=draft.pk, principal=writer, revision=2)
    assert asked.code == "ok", (asked.code, asked.problems)
    result = publishing.publish(draft_id=draft.pk, principal=second, seen=seen(draft.pk))
    assert result.version is not None, (result.code, result.problems)
    return result.version


def seen(draft_id: Any) -> str:
    """What a page that is opened now would post back."""
    draft = drafts.PolicyDraft.objects.select_related("policy__active").get(pk=draft_id)
    return publishing.seen_digest(draft=draft, revision=drafts.newest(draft=draft), in_force=draft.policy.active)
