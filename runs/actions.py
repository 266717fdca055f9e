"""An action: a tool, its contract's version and the normalised fields that decide the effect. Pure.

Reasons, rationale and key order are not part of it, so they never change what an approval is bound to.
"""

from dataclasses import dataclass
from typing import Any

from runs.canonical import canonical_bytes, digest, nfc


@dataclass(frozen=True, slots=True)
class Action:
    """One effect to be made: `effect` is flat, its values text (amounts as minor units in text)."""

    tool: str
    contract_version: str
    effect: dict[str, str]

    def __post_init__(self) -> None:
        for name, value in self.effect.items():
            if not isinstance(value, str):
                raise ValueError(f"effect field {name} must be text, not {type(value).__name__}")
        object.__setattr__(self, "effect", nfc(self.effect))

    def payload(self) -> dict[str, Any]:
        """The complete payload, as it is shown, hashed and executed."""
        return {"tool": self.tool, "contract": self.contract_version, "effect": self.effect}

    def canonical(self) -> bytes:
        return canonical_bytes(self.payload())

    def digest(self) -> str:
        return digest(self.payload())
