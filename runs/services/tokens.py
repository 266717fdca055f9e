"""Tokens of integrations: shown once, kept as SHA-256, revocable. A token starts and reads runs, and
operates them where it was made to; it never votes."""

import hashlib
import secrets
import uuid

from django.db import transaction

from runs import clock
from runs.models import ApiToken, Principal
from runs.services.principals import find_or_make

PREFIX = "aot_"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def issue(*, name: str, label: str, may_operate: bool = False) -> str:
    """Make a token for the integration `name` (made too if it is new) and return it, the only time it is seen.

    `may_operate` lets it pause, cancel and freeze as well; it stays as it was made.
    """
    token = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic(durable=True):
        principal = find_or_make(kind=Principal.Kind.INTEGRATION, key=f"integration:{name}", label=label)
        ApiToken.objects.create(principal=principal, label=label, digest=_digest(token), may_operate=may_operate)
    return token


def live(*, token: str) -> ApiToken | None:
    """The token as it is kept, with its integration, unless it was revoked."""
    found = ApiToken.objects.select_related("principal").filter(digest=_digest(token), revoked_at__isnull=True).first()
    return found if found and found.principal.kind == Principal.Kind.INTEGRATION else None


def revoke(*, token_id: uuid.UUID) -> bool:
    """End a token at once; False when it was not live."""
    with transaction.atomic(durable=True):
        live = ApiToken.objects.filter(pk=token_id, revoked_at__isnull=True)
        return live.update(revoked_at=clock.now()) == 1
