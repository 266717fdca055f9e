"""Secrets of one data folder: made once at random, kept in one file that only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from agentops.local.errors import LocalStackError


class Credentials:
    """Named secrets in ``<data folder>/secrets.json`` (mode 0600).

    A name that is asked for the first time gets a random value (URL-safe, 32 bytes of entropy) which is written
    before it is returned, so that it can never be used and then lost.
    """

    def __init__(self, *, data_dir: Path) -> None:
        self.path = data_dir / "secrets.json"

    def get(self, name: str, /) -> str:
        """Return the secret called ``name``, made on first use. Raises LocalStackError if the file is damaged."""
        known = self._read()
        if name not in known:
            known[name] = secrets.token_urlsafe(32)
            write_private(path=self.path, text=json.dumps(known, indent=2, sort_keys=True) + "\n")
        return known[name]

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise LocalStackError(
                f"{self.path} cannot be read ({error}). It holds the passwords of this data folder: restore it, "
                f"or remove the folder {self.path.parent} to begin again with empty data."
            ) from error
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise LocalStackError(f"{self.path} is not a table of names and texts: restore it from a copy.")
        return found


def write_private(*, path: Path, text: str) -> None:
    """Replace ``path`` with ``text`` in one step, readable by the owner alone from its first byte on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
