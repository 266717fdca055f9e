"""What a line of the story is made of. Pure."""

from dataclasses import dataclass
from typing import Any

LINE_LIMIT = 280  # letters of a text that may be long; the whole of it is in the event's detail

Data = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """`lead` is the strong part, `text` goes on in the same line, `note` stands below; `inner` is drawn indented."""

    icon: str
    lead: str
    text: str = ""
    note: str = ""
    tone: str = ""
    inner: bool = False


def short(text: object, limit: int = LINE_LIMIT) -> str:
    """One line of bounded length; says how long the whole is when it was cut."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else f"{line[:limit].rstrip()}… ({len(str(text)):,} letters in all)"
