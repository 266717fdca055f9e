"""What a decision is bound to, and what the person had before them, as digests that are compared. Pure."""

from collections.abc import Sequence
from typing import Any

from runs.canonical import digest


def binding_digest(*, action_digest: str, facts: Sequence[tuple[str, str, str, str]]) -> str:
    """SHA-256 over the action and the facts it rests on, each (kind, locator, version, bound digest), in any order.

    When a fact was read is not part of it: reading the same again changes nothing.
    """
    return digest({"action": action_digest, "facts": sorted([list(fact) for fact in facts])})


def page_digest(*, rows: Sequence[dict[str, Any]]) -> str:
    """SHA-256 over the bound rows ({key, label, value}) as displayed, in the order displayed."""
    return digest([[row["key"], row["label"], row["value"]] for row in rows])


def differences(*, old_rows: Sequence[dict[str, Any]], new_rows: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """[{key, label, old, new}] of every row that differs, in the new order; "" stands for a row that is not there."""
    old = {row["key"]: row for row in old_rows}
    new = {row["key"]: row for row in new_rows}
    found = []
    for key in [*new, *(key for key in old if key not in new)]:
        was, now = old.get(key), new.get(key)
        label = (now or was or {})["label"]
        before, after = (was["value"] if was else ""), (now["value"] if now else "")
        if was and now and was["label"] != now["label"]:  # the same value under another name means something else
            before, after = f"{was['label']}: {before}", f"{label}: {after}"
        if was is None or now is None or before != after:
            found.append({"key": key, "label": label, "old": before, "new": after})
    return found
