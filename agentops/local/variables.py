"""The environment variables the product is configured with, as the local stack resolves them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from agentops.local.credentials import Credentials, write_private
from agentops.local.errors import LocalStackError

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "agentops"
# Decided by the stack, so never inherited from the shell by accident: what is wanted from there is passed explicitly.
DECIDED = (
    "AGENTOPS_DATA",
    "PORT",
    "DATABASE_URL",
    "OWNER_DATABASE_URL",
    "BROKER_URL",
    "CHANNEL_URL",
    "BILLING_URL",
    "BILLING_API_KEY",
    "BILLING_WEBHOOK_SECRET",
    "HELPDESK_URL",
    "HELPDESK_TOKEN",
    "SANDBOX_URL",
    "SECRET_KEY",
    "PUBLIC_URL",
    "DEMO",
    # A test run sets these for itself; they must not reach the processes it starts.
    "DJANGO_SETTINGS_MODULE",
    "DJANGO_ALLOW_ASYNC_UNSAFE",
)
GENERATED = ("SECRET_KEY", "BILLING_API_KEY", "BILLING_WEBHOOK_SECRET", "HELPDESK_TOKEN")
PREFIXES = {"BILLING_API_KEY": "sk_test_", "BILLING_WEBHOOK_SECRET": "whsec_"}


def configured(environ: Mapping[str, str], /) -> dict[str, str]:
    """What somebody configured: the variables the stack decides that are set and not empty in ``environ``."""
    return {name: environ[name].strip() for name in DECIDED if environ.get(name, "").strip()}


def data_dir(environ: Mapping[str, str], /) -> Path:
    """The data folder that ``environ`` asks for (``.data`` in the repository by default)."""
    return Path(environ.get("AGENTOPS_DATA") or ROOT / ".data").expanduser().absolute()


def port(environ: Mapping[str, str], /) -> int:
    """The web port that ``environ`` asks for, 8000 by default. Raises LocalStackError if it isn't a port."""
    text = environ.get("PORT", "").strip() or "8000"
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise LocalStackError(f"PORT={text} is not a port: give a number from 1 to 65535, or 0 for any free one.")
    return int(text)


def resolve(*, data_dir: Path, port: int, sandbox_port: int | None, given: Mapping[str, str]) -> dict[str, str]:
    """Everything but the servers' addresses: secrets (made once), our own addresses, and the sandbox's if it runs.

    ``given`` wins throughout. The demo world is the default only for a database of our own, since it has known
    passwords.
    """
    credentials = Credentials(data_dir=data_dir)
    values = {
        "AGENTOPS_DATA": str(data_dir),
        "PORT": str(port),
        "PUBLIC_URL": f"http://localhost:{port}",
        "DEMO": "0" if "DATABASE_URL" in given else "1",
    }
    if sandbox_port is not None:
        sandbox = f"http://127.0.0.1:{sandbox_port}"
        values |= {"SANDBOX_URL": sandbox, "BILLING_URL": sandbox, "HELPDESK_URL": f"{sandbox}/helpdesk/v1"}
    for name in GENERATED:
        if name not in given:
            values[name] = PREFIXES.get(name, "") + credentials.get(name.lower())
    # A port of 0 was turned into a real one, so these two are ours.
    return values | {name: value for name, value in given.items() if name not in {"AGENTOPS_DATA", "PORT"}}


def needs_sandbox(given: Mapping[str, str], /) -> bool:
    """Whether the stand-in for outside systems has a part to play."""
    return not {"BILLING_URL", "HELPDESK_URL"} <= given.keys() and "SANDBOX_URL" not in given


def write_stack_env(*, path: Path, values: Mapping[str, str]) -> None:
    """Write ``KEY=VALUE`` lines (0600) for other shells. Raises LocalStackError for a value of more than one line."""
    for name, value in values.items():
        if "\n" in value or "\r" in value:
            raise LocalStackError(f"{name} has more than one line: correct it.")
    lines = [f"{name}={value}\n" for name, value in sorted(values.items())]
    write_private(path=path, text="# Written by the running local stack; removed when it stops.\n" + "".join(lines))


def child_environment(values: Mapping[str, str], /) -> dict[str, str]:
    """The environment of our own processes: the shell's, without what the stack decides, and ``values``."""
    inherited = {name: value for name, value in os.environ.items() if name not in DECIDED}
    return inherited | {"PYTHONUNBUFFERED": "1"} | dict(values)


def free_port(*, remembered: Path | None = None) -> int:
    """A free loopback port; the one ``remembered`` in that file if it still is, so that addresses stay the same."""
    if remembered is not None and remembered.exists():
        text = remembered.read_text(encoding="utf-8").strip()
        if text.isdigit() and 0 < int(text) < 65536 and port_is_free(int(text), patience=2.0):
            return int(text)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = int(probe.getsockname()[1])
    if remembered is not None:
        write_private(path=remembered, text=f"{found}\n")
    return found


def port_is_free(number: int, /, *, patience: float) -> bool:
    """Whether the loopback port can be had within ``patience`` seconds (a killed stack needs a moment to end).

    Raises LocalStackError for a port this user may not have.
    """
    deadline = time.monotonic() + patience
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", number))
                return True
            except PermissionError:
                raise LocalStackError(
                    f"PORT={number} needs more rights than this user has: use 1024 or above."
                ) from None
            except OSError:
                if time.monotonic() > deadline:
                    return False
        time.sleep(0.1)
