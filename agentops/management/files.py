"""Small JSON files that a person wrote, for commands: read safely, refused with what is wrong and what to do."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from agentops.api.parsing import NotAcceptable, read_object

MAX_BYTES = 100_000


def read_file(path: Path, *, known: set[str], example: str) -> dict[str, Any]:
    """The object in a JSON file, with no fields but the `known` ones. Raises CommandError."""
    try:
        if path.exists() and not path.is_file():
            raise CommandError(f"{path}: is not a file; give the path of a JSON file")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        said = getattr(problem, "strerror", None) or "not a path"
        raise CommandError(f"{path}: cannot be read ({said}); give the path of a JSON file") from None
    if len(raw) > MAX_BYTES:
        raise CommandError(f"{path}: is larger than {MAX_BYTES} bytes; give a small file")
    try:
        found = read_object(raw)
    except NotAcceptable as problem:
        raise CommandError(f"{path}: {problem}; write, for example, {example}") from None
    unknown = set(found) - known
    if unknown:
        there = ", ".join(sorted(known)[:-1]) + f" and {sorted(known)[-1]}"
        raise CommandError(f"{path}: unknown field {sorted(unknown)[0][:100]!a}; there are {there}")
    return found
