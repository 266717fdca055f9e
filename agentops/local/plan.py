"""What the stack starts, in order, as data: steps run to their end, programs stay."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentops.local.variables import ROOT

PROGRAMS = ("sandbox", "web", "worker", "relay", "messenger")
# Where billing's events are sent; the path belongs to the product's URLs.
WEBHOOK_PATH = "/api/v1/events/billing"
# Whoever starts the stack as root knows; eight lines about it at every start hide what matters. And all that the
# worker would check has been checked by the step before it, which loads every page.
WORKER_ENV = {
    "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
    "CELERY_SKIP_CHECKS": "1",
}


@dataclass(frozen=True)
class Step:
    """A command that has to end with status 0 before anything after it starts. ``own_database``: only where the
    database is the stack's own, so that by its folder's lock nobody else uses it. ``before_servers``: it uses none, and
    runs before any is started or asked for, with addresses that lead nowhere for those that aren't known yet. ``note``
    is told to who waits for it."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    own_database: bool = False
    before_servers: bool = False
    note: str = ""


@dataclass(frozen=True)
class Program:
    """A process that stays. It is ready when ``ready_url`` answers anything over HTTP, or its log holds
    ``ready_line``; with neither, when it is still there a moment after its start. ``patience`` is in seconds."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    ready_url: str | None = None
    ready_line: str | None = None
    patience: float = 60.0


Entry = Step | Program
Plan = Callable[[Mapping[str, str]], Sequence[Entry]]


def product(env: Mapping[str, str], /) -> list[Entry]:
    """The product's own plan for the resolved variables ``env``."""
    return [
        Step("settings", _manage("check", "--tag", "agentops"), before_servers=True),
        # The owner role's address, and only here: nothing that stays has more rights than the application's role.
        Step(
            "migrate",
            _manage("migrate", "--no-input", "-v", "1"),
            {"DATABASE_URL": env["OWNER_DATABASE_URL"]},
            note="a new database takes some seconds",
        ),
        Step("check", _manage("check", "--database", "default")),
        # Nobody else can have a process in there, so whatever ran before this machine was started has ended.
        Step("processes_ended", _manage("processes_ended"), own_database=True),
        *([_sandbox(env)] if "SANDBOX_URL" in env else []),
        *([Step("demo_world", _manage("demo_world"))] if demo(env) else []),
        _web(env),
        Program("worker", _worker(), WORKER_ENV, ready_line=" ready."),
        Program("relay", _manage("relay")),
        Program("messenger", _manage("messenger")),
    ]


def _manage(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def demo(env: Mapping[str, str], /) -> bool:
    """Whether the demo world is wanted."""
    return env.get("DEMO", "").lower() in {"1", "true", "yes", "on"}


def _sandbox(env: Mapping[str, str]) -> Program:
    url = env["SANDBOX_URL"]
    where = ["--port", url.rpartition(":")[2], "--data", f"{env['AGENTOPS_DATA']}/sandbox"]
    events = ["--webhook-url", f"http://127.0.0.1:{env['PORT']}{WEBHOOK_PATH}"]
    # Secrets by environment: anybody on the machine can read a command line.
    secrets = {
        "SANDBOX_API_KEY": env["BILLING_API_KEY"],
        "SANDBOX_WEBHOOK_SECRET": env["BILLING_WEBHOOK_SECRET"],
        "SANDBOX_TOKEN": env["HELPDESK_TOKEN"],
    }
    command = [sys.executable, "-m", "agentops.sandbox", *where, *events]
    return Program("sandbox", command, secrets, ready_url=f"{url}/_sandbox/health")


def _web(env: Mapping[str, str]) -> Program:
    listen = ["--host", "127.0.0.1", "--port", env["PORT"], "--ws", "auto"]
    quiet = ["--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", "4", "--lifespan", "off"]
    return Program(
        "web",
        [sys.executable, "-m", "uvicorn", "agentops.asgi:application", *listen, *quiet],
        {"WEB_POOL": "1"},
        ready_url=f"http://127.0.0.1:{env['PORT']}/",
    )


def _worker() -> list[str]:
    size = ["--concurrency", "2", "--loglevel", "INFO"]
    return [
        sys.executable,
        "-m",
        "celery",
        "--quiet",
        "-A",
        "agentops",
        "worker",
        *size,
        "--without-gossip",
        "--without-mingle",
    ]
