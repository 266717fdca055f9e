"""Web processes for tests, forked from a parent that has imported everything: starting one by itself takes seconds of a
core, and over a hundred tests need one of their own. What a child serves, and how, is the product's own.

The parent reads one JSON object a line: {"env": {…}, "options": {…}, "log": path or null}, and answers with a pid.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
# settings that the parent can be set up with; a child has its own
ANY = {
    "DJANGO_SETTINGS_MODULE": "agentops.settings", "DATABASE_URL": "postgresql:///offline", "DEBUG": "1",
    "SECRET_KEY": "of-a-process-that-serves-nothing",
}  # fmt: skip


class WebProcess:
    """As much of `subprocess.Popen` as tests of a web process need; how it ended is not known, only that it has."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("uvicorn", timeout or 0)
        return 0

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)


class Forge:
    def __init__(self, parent: "subprocess.Popen[str]") -> None:
        self._parent = parent

    def start(self, *, env: dict[str, str], log: Path | None = None, **options: Any) -> WebProcess:
        """uvicorn with `options` on the product's application, in this environment and no other."""
        assert self._parent.stdin is not None and self._parent.stdout is not None
        told = {"env": env, "options": options, "log": None if log is None else str(log)}
        self._parent.stdin.write(json.dumps(told) + "\n")
        self._parent.stdin.flush()
        return WebProcess(int(self._parent.stdout.readline()))


@cache
def forge() -> Forge:
    """This process's, from its first use to its end."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(_running())


@contextmanager
def _running() -> Iterator[Forge]:
    """The parent; with it end those of its children that are left."""
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.web_forge"],
        cwd=REPO, env={**os.environ, **ANY}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with parent:
        yield Forge(parent)
        assert parent.stdin is not None
        parent.stdin.close()
        parent.wait(timeout=120)


def _serve(told: dict[str, Any]) -> None:
    """Become a web process: the settings are read anew from its own environment."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if told["log"]:
        log = os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
    else:
        os.dup2(2, 1)
    os.environ.clear()
    os.environ.update(told["env"])
    from importlib import reload

    import uvicorn
    from django.conf import empty, settings
    from django.core.cache import caches
    from django.db import connections

    reload(sys.modules["agentops.settings"])
    settings._wrapped = empty
    for handler in (connections, caches):  # they keep what they have once read
        handler._settings = None
        vars(handler).pop("settings", None)
    uvicorn.run("agentops.asgi:application", **told["options"])


def main() -> None:
    import django

    django.setup()
    import channels.routing  # noqa: F401

    import agentops.urls  # and with it all pages; not the application, which is made of settings

    assert agentops.urls.urlpatterns and "agentops.asgi" not in sys.modules
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    children = []
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                _serve(json.loads(line))
            finally:
                sys.stderr.flush()
                os._exit(0)
        children.append(pid)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
