"""Laying recorded values out in a mail, so that no value can pass for a line of ours. Pure."""

import textwrap

from runs.texts import unbroken, visible

WIDTH = 72
BAR = "| "
SHOWN = 2000  # letters of a value; more only of those that are never cut
# what a decision turns on is shown whole, however long
NEVER_CUT = frozenset(
    {"amount", "account", "customer", "invoice", "invoice_total", "invoice_id", "applied", "reason", "policy", "ticket"}
)


def shown(*, key: str, value: str) -> str:
    """A value as one line, every mark written out that would reorder or hide text; a long one says that it was cut."""
    line = visible(text=unbroken(text=value))
    if len(line) <= SHOWN or key in NEVER_CUT or key.startswith("rule:"):
        return line
    return f"{line[:SHOWN]}… (the first {SHOWN:,} of {len(line):,} characters; all of it is on the page)"


def barred(*, text: str) -> list[str]:
    """The text in lines of a mail, each behind a bar of ours: a value cannot begin a line of its own."""
    lines = textwrap.wrap(
        text, WIDTH, break_long_words=True, break_on_hyphens=False, drop_whitespace=False, replace_whitespace=True
    )
    return [BAR + line for line in lines or [""]]


def block(*, label: str, value: str) -> str:
    """A label of ours with a recorded value under it."""
    return "\n".join([f"{shown(key='label', value=label)[:200]}:", *barred(text=value)])
