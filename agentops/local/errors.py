"""What the local stack says when it cannot go on."""

from __future__ import annotations


class LocalStackError(Exception):
    """Something a person has to put right; the text names the cause and the remedy and is shown without a traceback."""
