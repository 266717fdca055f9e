"""The port to models: a constructed view goes in, one typed choice comes out. A provider has no other route."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from runs.money import Strict


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer, as it came. `answer` is the raw JSON-like choice (`kind` names it), None when there was none, and
    then `failure` says why in words; `messages` is the provider's own transcript, if any; `usage` has token counts."""

    model: str
    answer: dict[str, Any] | None
    failure: str = ""
    messages: Any = None
    usage: dict[str, int] = field(default_factory=dict)


class ProviderDown(Exception):
    """The model could not be asked: a dependency is down, nothing is known about its choice."""


class Provider(Protocol):
    name: str

    def choose(self, *, view: dict[str, Any], choices: Sequence[type[Strict]], instructions: str) -> Turn:
        """Ask once. `choices` are the only acceptable shapes. Raises ProviderDown."""
        ...
