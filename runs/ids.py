"""Identifiers: time-ordered UUIDs (RFC 9562, version 7), made here because PostgreSQL has them only from 18 on."""

import uuid

import uuid_utils.compat


def new_id() -> uuid.UUID:
    return uuid.UUID(int=uuid_utils.compat.uuid7().int)
