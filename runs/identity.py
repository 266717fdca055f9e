"""The names an operation is known by outside: one identity for ever, and the key that goes over the wire. Pure."""

import uuid


def operation_identity(*, installation: str, tool: str, number: uuid.UUID) -> str:
    """`<installation>/<tool>/<uuid7>`: made with the proposal, before anything could be sent."""
    return f"{installation}/{tool}/{number}"


def wire_key(*, identity: str, epoch: int) -> str:
    """What the receiver deduplicates by. The epoch is raised only after absence was proved."""
    return f"{identity}:{epoch}"
