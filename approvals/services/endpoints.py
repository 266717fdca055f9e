"""Which other systems are told, and which are not any more; each change is a line of the record."""

import secrets
import uuid

from django.db import IntegrityError, transaction

from approvals.announced import secret
from approvals.models import Delivery, Endpoint
from runs import clock, record
from runs.models import Principal


class AlreadyThere(Exception):
    """The address is told already."""


def add(*, url: str, actor: Principal) -> tuple[Endpoint, str]:
    """Tell this address of every request from now on; with the secret, which is shown this once. The caller has looked
    at the address. One durable transaction. Raises AlreadyThere."""
    try:
        with transaction.atomic(durable=True):
            endpoint = Endpoint.objects.create(
                url=url, nonce=secrets.token_hex(16), added_by=actor, added_at=clock.now()
            )
            record.append_system(
                topic="webhooks", kind="webhook.added", actor=actor, endpoint=str(endpoint.pk), url=url
            )
    except IntegrityError:
        raise AlreadyThere(url) from None
    return endpoint, secret(endpoint)


def renew(*, endpoint_id: uuid.UUID, actor: Principal) -> str | None:
    """A new secret in place of the old one, at once; None when there is no such endpoint. One durable transaction."""
    with transaction.atomic(durable=True):
        endpoint = Endpoint.objects.select_for_update(no_key=True).filter(pk=endpoint_id, ended_at=None).first()
        if endpoint is None:
            return None
        endpoint.nonce = secrets.token_hex(16)
        endpoint.save(update_fields=["nonce"])
        record.append_system(topic="webhooks", kind="webhook.renewed", actor=actor, endpoint=str(endpoint.pk))
    return secret(endpoint)


def end(*, endpoint_id: uuid.UUID, actor: Principal) -> bool:
    """Nothing is sent there any more, and what waits is not sent either. One durable transaction."""
    with transaction.atomic(durable=True):
        now = clock.now()
        if not Endpoint.objects.filter(pk=endpoint_id, ended_at=None).update(ended_at=now):
            return False
        Delivery.objects.filter(endpoint_id=endpoint_id, ended_at=None).update(
            ended_at=now, result=Delivery.Result.ENDPOINT_ENDED, lease_until=None
        )
        record.append_system(topic="webhooks", kind="webhook.ended", actor=actor, endpoint=str(endpoint_id))
    return True
