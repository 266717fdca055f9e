"""Every refusal about a policy's draft, and its own sentence. Pure."""

from collections.abc import Mapping
from typing import Any

from approvals.words import when

SENTENCES: dict[str, str] = {
    "no_right": "Your rights have changed: this takes an active account with the right to {act} policies. Nothing was "
    "changed.",
    "not_a_person": "A policy takes two named people; a machine can neither write nor publish one.",
    "no_such_version": "There is no such version of this policy. The first one is made when the product is set up.",
    "in_force_already": "Version {number} is in force already. There is nothing to go back to.",
    "draft_exists": "{by} has a draft of this policy under way. There is one at a time: go on with it, or discard it.",
    "closed": "This draft has ended: {by} {ended} it{on}. Nothing was changed.",
    "changed": "{by} saved revision {revision} after you opened this page, so nothing was overwritten or done. What "
    "you wrote is still below: compare it with theirs before you save again.",
    "invalid": "This cannot be put in force as it is. What has to be mended is listed below.",
    "asked_already": "A second person has been asked to publish this already.",
    "nothing_changed": "Nothing differs from the version in force, so there is nothing to publish.",
    "note_needed": "Say why the policy changes: whoever publishes it reads that, and it stays with the version.",
    "not_asked": "Nobody asks for this to be published now: {by} is writing it. Nothing was published.",
    "reason_needed": "Say why you send it back: the writers read it.",
    "reason_too_long": "The reason is too long: at most 2000 characters.",
    "own_draft": "You had a part in writing this, so somebody else publishes it. That takes two people, always.",
    "in_force_changed": "The version in force changed after this draft was begun: it is {version} now. Nothing was "
    "published. Discard this draft and write the change again on what is in force.",
    "draft_changed": "{by} saved revision {revision} after you opened this page. Nothing was published: read what is "
    "asked now.",
    "someone_else": "This page was opened under another login, so nothing was changed.",
}
ENDED = {"published": "published", "discarded": "discarded"}


def sentence(*, code: str, detail: Mapping[str, Any] | None = None, act: str = "write") -> str:
    """The sentence for a code; `act` is write or publish. Unknown codes say so plainly."""
    template = SENTENCES.get(code)
    if template is None:
        return f"This was refused ({code}). Nothing was changed."
    filled = {"by": "Somebody", "revision": "another", "version": "another", "number": "?", **dict(detail or {})}
    filled["by"] = filled["by"] or "Somebody"
    filled["ended"] = ENDED.get(str(filled.get("state", "")), "ended")
    filled["on"] = f" on {when(iso=filled['at'])}" if filled.get("at") else ""
    return template.format_map({**filled, "act": act})
