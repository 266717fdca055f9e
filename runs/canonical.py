"""Canonical bytes (RFC 8785, JSON Canonicalization Scheme) and their SHA-256, for everything that is compared.

Text is brought to Unicode NFC first, since the scheme keeps NFC and NFD apart. Numbers in bound data are strings;
integers are let through only where JSON readers agree on them (below 2**53).
"""

import hashlib
import unicodedata
from typing import Any

import rfc8785

MAX_INTEGER = 2**53 - 1


def nfc(value: Any) -> Any:
    """The same JSON-like value with every string in NFC. Raises ValueError on floats and on integers beyond 2**53."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueError(f"{value} is too large to be compared exactly; write it as text")
        return value
    if isinstance(value, dict):
        return {nfc(str(key)): nfc(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [nfc(item) for item in value]
    raise ValueError(f"{type(value).__name__} has no canonical form here; write it as text")


def canonical_bytes(value: Any) -> bytes:
    return bytes(rfc8785.dumps(nfc(value)))


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
