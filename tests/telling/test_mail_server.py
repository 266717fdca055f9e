"""Mail against a real server: taken, refused, gone and back, silent, and a messenger killed between send and record."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentops.local.postgres import EmbeddedPostgres
from agentops.mail_address import mail_settings
from agentops.telling.mailer import REFUSED_TRIES, send_next
from approvals.models import Notice
from tests.approvals import world
from tests.conftest import REPO
from tests.telling.conftest import person, spread
from tests.telling.receivers import Mailbox, mail_server

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.stack]


def use(settings: Any, port: int) -> None:
    for name, value in mail_settings(url=f"smtp://127.0.0.1:{port}").items():
        setattr(settings, name, value)


@pytest.fixture
def box(settings: Any) -> Iterator[Mailbox]:
    with mail_server() as found:
        use(settings, found.port)
        yield found


def test_a_mail_is_taken_as_it_was_meant(box: Mailbox) -> None:
    person("maya")
    world.ask()
    spread()
    assert send_next() == 1
    (message,) = box.got
    assert box.to == ["maya@agentops.example"] and "$1,200.00 USD" in message["Subject"]
    assert "$1,200.00 USD" in message.get_body(("plain",)).get_content()
    assert Notice.objects.get().result == "sent"


def test_a_lost_mail_server_is_tried_again_and_holds_up_nothing(settings: Any, later: Callable[..., None]) -> None:
    with mail_server() as gone:
        port = gone.port
    use(settings, port)
    maya, jonas = person("maya"), person("jonas")
    version = world.policy()
    asked = world.ask(version=version)
    spread()
    later(minutes=2)
    assert send_next() == 1 and send_next() == 1 and send_next() == 0
    kept = Notice.objects.first()
    assert kept is not None and kept.result == "" and "refused" in kept.problem.lower() and kept.lease_until is None
    other = world.ask(version=version)
    assert world.cast(other, jonas).code == "approved"  # deciding never waits for mail
    spread()
    with mail_server(port) as back:
        later(minutes=10)
        while send_next():
            pass
        assert sorted(back.to) == ["jonas@agentops.example", "maya@agentops.example"]
        assert all(asked.run.subject in message["Subject"] for message in back.got)
    assert world.cast(asked, maya).code == "approved"


def test_what_could_not_be_sent_for_days_is_given_up_and_shown(settings: Any, later: Callable[..., None]) -> None:
    from agentops.pages.telling import figures
    from approvals.services import outgoing
    from runs import clock

    person("maya")
    world.ask()
    spread()
    (notice,) = outgoing.take_notices()
    outgoing.retry_notices(notices=[notice], problem="no route to host")
    shown: Any = figures(now=clock.now())
    assert shown["ways"][0].again == 1 and shown["ways"][0].problem == "no route to host"
    later(days=3, minutes=10)
    (notice,) = outgoing.take_notices()
    outgoing.retry_notices(notices=[notice], problem="no route to host")
    assert Notice.objects.get().result == "given_up"
    assert Notice.objects.get().problem == "no route to host"
    shown = figures(now=clock.now())
    assert shown["ways"][0].given_up == 1 and shown["ways"][0].again == 0


def test_an_address_that_is_refused_holds_up_nobody_else(box: Mailbox, later: Callable[..., None]) -> None:
    person("maya")
    jonas = person("jonas")
    odd = world.user("odd", email="not an address\nBcc: victim@elsewhere.example")
    box.refused.add(jonas.email)
    world.ask()
    spread()
    for _ in range(REFUSED_TRIES):
        later(minutes=6)
        while send_next():
            pass
    assert box.to == ["maya@agentops.example"]
    ended = dict(Notice.objects.values_list("recipient__username", "result"))
    assert ended == {"maya": "sent", "jonas": "given_up", "odd": "given_up"}
    assert "550" in Notice.objects.get(recipient=jonas).problem
    assert "not an address" in Notice.objects.get(recipient=odd).problem


def test_a_messenger_killed_between_send_and_record_sends_the_same_mail_again(
    db: str, postgres: EmbeddedPostgres, tmp_path: Path, later: Callable[..., None]
) -> None:
    """At least once: the repeated mail has the first one's Message-ID, so mail programs show it once."""
    person("maya")
    world.ask()
    with mail_server() as box:
        env = {
            **os.environ, "DJANGO_SETTINGS_MODULE": "agentops.settings", "DATABASE_URL": postgres.url("app", db),
            "EMAIL_URL": f"smtp://127.0.0.1:{box.port}", "AGENTOPS_DATA": str(tmp_path), "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        box.silent = True  # it takes the mail; the word that it did never arrives
        with (tmp_path / "log").open("wb") as log:
            first = subprocess.Popen([sys.executable, "manage.py", "messenger"], cwd=REPO, env=env, stderr=log)
            try:
                assert box.arrived.wait(timeout=120), (tmp_path / "log").read_text()
            finally:
                first.send_signal(signal.SIGKILL)
                first.wait(timeout=120)
            assert Notice.objects.get().result == ""
            box.silent = False
            box.arrived.clear()
            later(minutes=3)  # the lease of the dead one ends
            second = subprocess.Popen([sys.executable, "manage.py", "messenger"], cwd=REPO, env=env, stderr=log)
            try:
                assert box.arrived.wait(timeout=120), (tmp_path / "log").read_text()
            finally:
                second.send_signal(signal.SIGTERM)
                assert second.wait(timeout=120) == 0  # it ends what it is at
        assert len(box.got) == 2 and len({message["Message-ID"] for message in box.got}) == 1
    assert Notice.objects.get().result == "sent" and Notice.objects.get().tries == 2
