"""Text from outside, made fit to be kept and shown. Pure."""

import re
import unicodedata
from typing import Any

MARK = "\ufffd"  # the replacement character: something was here that no text can hold


def storable(value: Any) -> Any:
    """The same JSON-like value with NUL and lone surrogates replaced, in names too: PostgreSQL keeps neither, and one
    such character in a ticket would otherwise stop its run for good."""
    if isinstance(value, str):
        if "\x00" not in value and not any("\ud800" <= mark <= "\udfff" for mark in value):
            return value
        return "".join(MARK if mark == "\x00" or "\ud800" <= mark <= "\udfff" else mark for mark in value)
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value


def typed(*, text: str) -> str:
    """What somebody typed, such as a reason: trimmed, and made storable."""
    return str(storable(text)).strip()


def untrusted(text: str, *, limit: int) -> dict[str, str]:
    """Text by outsiders as a model is shown it: marked as data, cut at `limit` characters, its true length named."""
    shown = {"untrusted_text": text[:limit]}
    if len(text) > limit:
        shown["note"] = f"cut: the first {limit} of {len(text)} characters"
    return shown


def unmarked(value: Any) -> Any:
    """The same JSON-like value with every marked text put back as the plain text it was cut to, for code that reads a
    view by rule; nothing here obeys what a text says."""
    if isinstance(value, dict):
        if isinstance(value.get("untrusted_text"), str):
            return value["untrusted_text"]
        return {name: unmarked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    return value


def one_line(*, text: str, limit: int) -> str:
    """Untrusted text as one line of at most `limit` characters, an ellipsis where it was cut.

    Control characters and line breaks become spaces, and marks that reorder or hide text are dropped, so no text can
    pretend to be another line of the page.
    """
    spaced = "".join(" " if unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") else mark for mark in text)
    shown = "".join(mark for mark in spaced if unicodedata.category(mark) != "Cf")
    line = " ".join(shown.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def quoted(*, text: str, limit: int) -> str:
    """Somebody's own words in quotation marks that the words themselves cannot close: one line, at most `limit`
    characters between the marks."""
    return f"“{one_line(text=text, limit=limit).translate(_INNER_QUOTES)}”"


_INNER_QUOTES = str.maketrans({"“": "‘", "”": "’"})
# Unicode's categories Cc, Cf, Zl and Zp, without tab, line feed and carriage return, which pages are laid out with
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def visible(*, text: str) -> str:
    """The text with every mark that reorders, hides or splits it written out, such as ⟨U+202E⟩."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def unbroken(*, text: str) -> str:
    """A value of one line with its line breaks drawn (⏎) instead of made, so that it cannot pretend to be two rows."""
    return re.sub(r"\r\n|\r|\n", "⏎ ", text)
