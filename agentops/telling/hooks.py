"""Calling webhooks: one signed POST a delivery, in a limited time, without redirects, proxies or repeats of its own."""

import logging
from dataclasses import dataclass

import requests
from django.conf import settings

from agentops.telling import addresses
from approvals import announced
from approvals.models import Delivery
from approvals.services import outgoing
from runs import clock
from runs.tools.http import LimitedSession

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call: `problem` is empty when it was taken."""

    status: int | None = None
    problem: str = ""
    retry_after: str | None = None


def deliver_next() -> int:
    """Deliver one event that is due, if any; returns how many were worked off."""
    delivery = outgoing.take_delivery()
    if delivery is None:
        return 0
    if delivery.endpoint.ended_at is not None:
        outgoing.end_delivery(delivery=delivery, result=Delivery.Result.ENDPOINT_ENDED)
        return 1
    answer = call(delivery)
    if answer.problem:
        log.warning("webhook %s to %s: %s", delivery.pk, delivery.endpoint.pk, answer.problem)
        outgoing.retry_delivery(
            delivery=delivery, status=answer.status, problem=answer.problem, retry_after=answer.retry_after
        )
    else:
        outgoing.end_delivery(delivery=delivery, result=Delivery.Result.DELIVERED, status=answer.status)
    return 1


def call(delivery: Delivery) -> Answer:
    """POST it once. The address is looked at again: its name may lead elsewhere by now."""
    url, body = delivery.endpoint.url, delivery.body.encode()
    try:
        addresses.check(url=url)
    except addresses.BadAddress as problem:
        return Answer(problem=str(problem))
    signed = announced.signature(secret=announced.secret(delivery.endpoint), body=body, at=int(clock.now().timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "agentops",
        announced.HEADER: signed,
        "Agentops-Delivery": str(delivery.pk),
    }
    limit = min(settings.CALL_LIMIT_SECONDS, 30.0)
    try:
        with LimitedSession(url=url, limit=limit, may_reach=addresses.may_reach(url=url)) as session:
            session.trust_env = False  # a proxy would connect to whatever it likes
            # a redirect is an answer like any other: nothing of it is followed, or read
            session.get_redirect_target = lambda _: None  # type: ignore[method-assign,assignment]
            answer = session.post(
                url, data=body, headers=headers, timeout=(min(3.0, limit), limit), allow_redirects=False, stream=True
            )
            status, asked = answer.status_code, answer.headers.get("Retry-After")
    except (requests.RequestException, OSError) as problem:
        return Answer(problem=f"no answer ({type(problem).__name__})")
    if 200 <= status < 300:
        return Answer(status=status)
    words = f"answered {status}" + (", and redirects are not followed" if 300 <= status < 400 else "")
    return Answer(status=status, problem=words, retry_after=asked)
