"""Webhooks: signed, the same body at every try, patient with who is busy, and never led astray."""

import datetime as dt
import hashlib
import hmac
import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agentops.permissions import ensure_groups
from agentops.telling.hooks import deliver_next
from approvals.models import Delivery, Endpoint
from approvals.services import endpoints
from runs import clock
from runs.models import Event
from runs.services import principals
from tests.approvals import world
from tests.telling.conftest import person, spread
from tests.telling.receivers import Hook, webhook

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as found:
        yield found


def told_to(hook: Hook) -> str:
    person("maya")
    _, secret = endpoints.add(url=hook.url, actor=principals.system())
    return secret


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver does it, from the description alone."""
    parts = dict(part.split("=", 1) for part in headers["Agentops-Signature"].split(","))
    if abs(time.time() - int(parts["t"])) > 300:
        return False
    mine = hmac.new(secret.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(mine, parts["v1"])


def all_of_them() -> int:
    done = 0
    while deliver_next():
        done += 1
    return done


def test_every_change_is_told_signed_and_once(hook: Hook) -> None:
    secret = told_to(hook)
    asked = world.ask(sentence='Issue $1,200.00 to </script>\u202e\n"Acme"')
    spread()
    world.cast(asked, person("jonas"))
    spread()
    assert sum(world.at_once(*[all_of_them] * 3)) + all_of_them() == 2
    told = [json.loads(body) for _, body in hook.got]
    assert {one["type"] for one in told} == {"request.opened", "request.approved"}
    opened = next(one for one in told if one["type"] == "request.opened")
    assert opened["request"]["amount"] == {"minor": "120000", "currency": "USD"}
    assert opened["request"]["rows"] == asked.request.page and "\n" not in opened["request"]["ask"]
    assert opened["id"] == f"run:{asked.run.pk}:{Event.objects.get(kind='request.opened').seq}"
    assert all(verified(secret, headers, body) for headers, body in hook.got)
    headers, body = hook.got[0]
    assert not verified("whsec_other", headers, body) and not verified(secret, headers, body + b" ")
    assert set(Delivery.objects.values_list("result", "status")) == {("delivered", 204)}
    assert secret not in str(list(Endpoint.objects.values()))


def test_a_failing_endpoint_is_left_alone_longer_and_longer(hook: Hook, later: Callable[..., None]) -> None:
    told_to(hook)
    for _ in range(3):
        world.ask()
    spread()
    hook.answers = [(503, {"Retry-After": "1800"}), (500, {})]
    assert deliver_next() == 1 and deliver_next() == 0  # the others wait as well: one call, not three
    endpoint = Endpoint.objects.get()
    assert endpoint.not_before is not None
    assert dt.timedelta(minutes=29) < endpoint.not_before - clock.now() <= dt.timedelta(minutes=30)
    later(minutes=31)
    assert deliver_next() == 1 and deliver_next() == 0
    endpoint.refresh_from_db()
    assert endpoint.failures == 2
    assert Delivery.objects.filter(problem="answered 500").count() == 1
    later(minutes=2)
    while deliver_next():
        pass
    assert Delivery.objects.filter(result="delivered").count() == 3 and len(hook.got) == 5
    endpoint.refresh_from_db()
    assert endpoint.failures == 0 and endpoint.not_before is None
    bodies = [body for _, body in hook.got]
    assert len(set(bodies)) == 3  # a repeated one is the same to the byte


def test_what_nobody_takes_for_days_is_given_up(hook: Hook, later: Callable[..., None]) -> None:
    told_to(hook)
    world.ask()
    spread()
    later(days=3, minutes=1)
    hook.answers = [(404, {})]
    assert deliver_next() == 1
    found = Delivery.objects.get()
    assert (found.result, found.status, found.problem) == ("given_up", 404, "answered 404")


def test_a_redirect_is_not_followed(hook: Hook) -> None:
    told_to(hook)
    world.ask()
    spread()
    with webhook() as inner:
        hook.answers = [(307, {"Location": inner.url})]
        assert deliver_next() == 1 and inner.got == []
    assert "redirects are not followed" in Delivery.objects.get().problem


def test_an_ended_endpoint_hears_nothing_more(hook: Hook) -> None:
    told_to(hook)
    world.ask()
    spread()
    assert endpoints.end(endpoint_id=Endpoint.objects.get().pk, actor=principals.system())
    world.ask()
    spread()
    assert deliver_next() == 0 and hook.got == []
    assert list(Delivery.objects.values_list("result", flat=True)) == ["ended"]
    assert not endpoints.end(endpoint_id=Endpoint.objects.get().pk, actor=principals.system())


def test_a_name_that_leads_elsewhere_after_the_look_sends_nothing(hook: Hook, monkeypatch: Any) -> None:
    """The name is public when it is looked at, and this machine when it is connected to."""
    port = int(hook.url.rpartition(":")[2].partition("/")[0])
    person("maya")
    real = socket.getaddrinfo
    turns = iter(["1.1.1.1"])

    def turning(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real(next(turns, "127.0.0.1") if host == "hook.example" else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", turning)
    endpoints.add(url=f"https://hook.example:{port}/", actor=principals.system())
    world.ask()
    spread()
    assert deliver_next() == 1
    assert hook.got == [] and Delivery.objects.get().problem == "no answer (ConnectionError)"


def test_the_command_shows_a_secret_once_and_takes_an_admin(hook: Hook) -> None:
    groups = ensure_groups()
    tomas, priya = world.user("tomas", group=""), world.user("priya", group="")
    tomas.groups.add(groups["admin"])
    priya.groups.add(groups["support"])

    def run(*words: str) -> str:
        out = io.StringIO()
        call_command("webhooks", *words, stdout=out)
        return out.getvalue().strip()

    for words, told in (
        (["--add", hook.url], "say under whose name"),
        (["--add", hook.url, "--as", "priya"], "--as: priya may not change who is told: use an account with that"),
        (["--add", "https://10.1.1.1", "--as", "tomas"], "--add: "),
    ):
        with pytest.raises(CommandError, match=told):
            run(*words)
    pk, secret = run("--add", hook.url, "--as", "tomas").split()
    assert secret.startswith("whsec_") and secret not in run() and "live; 0 delivered" in run()
    with pytest.raises(CommandError, match="already"):
        run("--add", hook.url, "--as", "tomas")
    person("maya")
    world.ask()
    renewed = run("--renew", pk, "--as", "tomas")
    spread()
    assert deliver_next() == 1
    headers, body = hook.got[0]
    assert renewed != secret and verified(renewed, headers, body) and not verified(secret, headers, body)
    assert run("--end", pk, "--as", "tomas") == "ended" and "ended; 1 delivered" in run()
    kinds = list(Event.objects.filter(stream="system:webhooks").values_list("kind", flat=True))
    assert kinds == ["webhook.added", "webhook.renewed", "webhook.ended"]
