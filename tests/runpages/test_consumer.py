"""The socket of a run's page, against the real web process: order, gaps, doubles, and who may watch."""

import contextlib
import re
import time
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agentops import hints
from runs.models import Run
from tests.runpages import world
from tests.runpages.serving import Web, session_of

LINE = re.compile(r'<li id="e-(\d+)"')
SYNC = re.compile(r'data-seq="(\d+)" data-last="(\d+)"')
PATIENCE = 15.0


def opened(
    web: Web, run: Run, session: str, *, after: int | None = None, origin: str | None = None
) -> ClientConnection:
    return connect(
        web.socket_url(run.pk, after),
        origin=origin or web.url,  # type: ignore[arg-type]
        additional_headers={"Cookie": f"{web.cookie_name}={session}"},
        proxy=None,
        max_size=None,
    )


def lines(message: str | bytes) -> list[int]:
    return [int(number) for number in LINE.findall(str(message))]


def read_up_to(socket: ClientConnection, last: int) -> tuple[list[int], int]:
    """Numbers in the order they came until `last` is there, and in how many messages."""
    seen: list[int] = []
    count = 0
    until = time.monotonic() + PATIENCE
    while not seen or seen[-1] < last:
        seen += lines(socket.recv(timeout=max(until - time.monotonic(), 0.01)))
        count += 1
    return seen, count


def happen(run: Run, number: int) -> None:
    for _ in range(number):
        world.tell(run, "run.note", text="something happened")
        hints.publish(run_id=run.pk, seq=run.event_seq)


@pytest.fixture
def run(db: str) -> Run:
    run = world.new_run()
    world.tell(run, "run.started", title=run.title, workflow="service_credit v1")
    return run


@pytest.fixture
def priya(db: str) -> User:
    return world.support()


@pytest.fixture
def session(priya: User) -> Iterator[str]:
    yield session_of(priya)


def closed_with(socket: ClientConnection) -> int | None:
    """The code the server closes with, everything before it read and thrown away."""
    try:
        while True:
            socket.recv(timeout=PATIENCE)
    except ConnectionClosed as closing:
        return closing.rcvd.code if closing.rcvd else None


def test_300_events_while_the_socket_is_lost_for_5_seconds(web: Web, run: Run, session: str) -> None:
    with opened(web, run, session, after=0) as socket:
        first, _ = read_up_to(socket, 1)
        happen(run, 5)
        more, _ = read_up_to(socket, 6)
        socket.socket.close()  # the line is cut, nobody says goodbye
    seen = first + more
    lost_at = time.monotonic()
    happen(run, 300)
    time.sleep(max(0.0, 5.0 - (time.monotonic() - lost_at)))
    with opened(web, run, session, after=seen[-1]) as socket:
        rest, messages = read_up_to(socket, run.event_seq)
        happen(run, 1)
        last, _ = read_up_to(socket, run.event_seq)
    assert seen + rest + last == list(range(1, 308))
    assert messages < 20, "a flood instead of a batch"


def test_a_slow_reader_gets_everything_in_order_in_batches(web: Web, run: Run, session: str) -> None:
    with opened(web, run, session, after=0) as slow, opened(web, run, session, after=0) as quick:
        happen(run, 150)
        quick_seen, _ = read_up_to(quick, 151)
        happen(run, 150)
        time.sleep(1.0)
        slow_seen, messages = read_up_to(slow, 301)
        quick_seen += read_up_to(quick, 301)[0]
    assert slow_seen == quick_seen == list(range(1, 302))
    assert messages < 100


def test_more_than_a_batch_is_sent_in_parts_and_says_how_far_it_is(web: Web, run: Run, session: str) -> None:
    for _ in range(640):
        world.tell(run, "run.note", text="x")
    with opened(web, run, session, after=0) as socket:
        parts = [str(socket.recv(timeout=PATIENCE)) for _ in range(3)]
    assert [len(lines(part)) for part in parts] == [300, 300, 41]
    assert [SYNC.search(part).groups() for part in parts] == [  # type: ignore[union-attr]
        ("300", "641"), ("600", "641"), ("641", "641"),
    ]  # fmt: skip


def test_without_any_hint_it_still_comes(web: Web, run: Run, session: str) -> None:
    with opened(web, run, session, after=0) as socket:
        read_up_to(socket, 1)
        world.tell(run, "run.note", text="nobody was told")
        assert read_up_to(socket, 2)[0] == [2]


def test_the_head_of_the_page_comes_with_the_events(web: Web, run: Run, session: str) -> None:
    with opened(web, run, session, after=1) as socket:
        first = str(socket.recv(timeout=PATIENCE))
        assert 'id="run-head"' in first and lines(first) == []
        world.move(run, world.S.GATHERING)
        hints.publish(run_id=run.pk, seq=run.event_seq)
        second = str(socket.recv(timeout=PATIENCE))
    assert lines(second) == [2] and "Gathering" in second and 'id="run-lanes"' in second


def test_an_odd_last_number_is_not_believed(web: Web, run: Run, session: str) -> None:
    headers = {"Cookie": f"{web.cookie_name}={session}"}
    for odd in ("-1", "x", "99999999999999999999", "1e3", "%00", "%D9%A3", "7"):
        address = web.socket_url(run.pk) + f"?after={odd}"
        with connect(address, origin=web.url, additional_headers=headers, proxy=None) as socket:  # type: ignore[arg-type]
            message = str(socket.recv(timeout=PATIENCE))
        assert SYNC.search(message).groups() == ("1", "1"), odd  # type: ignore[union-attr]


def test_another_origin_is_refused_port_and_scheme_too(web: Web, run: Run, session: str) -> None:
    for origin in (
        f"http://127.0.0.1:{web.port + 1}",
        web.url.replace("http:", "https:"),
        "http://evil.example",
        "null",
    ):
        with pytest.raises(InvalidStatus) as refused:
            opened(web, run, session, origin=origin)
        assert refused.value.response.status_code == 403
    with opened(web, run, session, origin=web.url) as socket:
        assert socket.recv(timeout=PATIENCE)


def test_signed_out_and_unknown_sessions_are_told_so(web: Web, run: Run, session: str, priya: User) -> None:
    for nobody in ("", "no-such-session", "a" * 200):
        with opened(web, run, nobody) as socket:
            assert closed_with(socket) == 4401
    priya.set_password("another long password")
    priya.save()
    with opened(web, run, session) as socket:
        assert closed_with(socket) == 4401, "a session from before the password was changed"


def test_no_right_and_no_run(web: Web, run: Run, session: str) -> None:
    with opened(web, run, session_of(world.person("olga"))) as socket:
        assert closed_with(socket) == 4403
    absent = Run(title="never saved")
    with opened(web, absent, session) as socket:
        assert closed_with(socket) == 4404


def test_what_happens_after_the_right_is_gone_is_not_sent(web: Web, run: Run) -> None:
    losses = {
        "right": (4403, lambda user: user.user_permissions.clear()),
        "login": (4401, lambda user: Session.objects.filter(pk=sessions[user.username]).delete()),
        "account": (4401, lambda user: User.objects.filter(pk=user.pk).update(is_active=False)),
    }
    people = {name: world.support(name) for name in losses}
    sessions = {name: session_of(user) for name, user in people.items()}
    for name, (code, lose) in losses.items():
        with opened(web, run, sessions[name], after=0) as socket:
            assert read_up_to(socket, run.event_seq)[0][0] == 1
            lose(people[name])
            world.tell(run, "run.note", text="not for these eyes")
            hints.publish(run_id=run.pk, seq=run.event_seq)
            seen: list[int] = []
            try:
                while True:
                    seen += lines(socket.recv(timeout=PATIENCE))
            except ConnectionClosed as closing:
                assert closing.rcvd is not None and closing.rcvd.code == code, name
        assert seen == [], name


def test_a_list_of_approvals_is_told_to_look_and_nothing_else(web: Web, db: str) -> None:
    def listening(session: str) -> ClientConnection:
        headers = {"Cookie": f"{web.cookie_name}={session}"}
        address = f"ws://127.0.0.1:{web.port}/ws/approvals/"
        return connect(address, origin=web.url, additional_headers=headers, proxy=None)  # type: ignore[arg-type]

    with listening(session_of(world.person("olga"))) as socket:
        assert closed_with(socket) == 4403
    with listening("no-such-session") as socket:
        assert closed_with(socket) == 4401
    with listening(session_of(world.person("maya", "approvals.view_approvalrequest"))) as socket:
        until, heard = time.monotonic() + PATIENCE, ""
        while not heard and time.monotonic() < until:  # the server joins the group a moment after the handshake
            hints.lists_moved()
            with contextlib.suppress(TimeoutError):
                heard = str(socket.recv(timeout=2))
        assert heard == "look"


def test_a_hint_server_that_is_gone_costs_a_second_at_most(settings: object, run: Run) -> None:
    layer = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}
    settings.CHANNEL_LAYERS = {"default": {**layer, "CONFIG": {"hosts": ["redis://127.0.0.1:9/0"]}}}  # type: ignore[attr-defined]
    hints.publish(run_id=run.pk, seq=1)  # warns, and nothing else
    hints.lists_moved()
