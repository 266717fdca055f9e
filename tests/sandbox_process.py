"""The sandbox as tests use it: a real process, started on a free port, and its control API."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

API_KEY = "sk_test_of_the_sandbox"
TOKEN = "token-of-the-sandbox"
WEBHOOK_SECRET = "whsec_of_the_sandbox"
_ROOT = Path(__file__).parents[1]
_START_SECONDS = 20.0
_READY = "sandbox ready on "
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class SandboxRefused(Exception):
    """The control API answered with an error."""

    def __init__(self, *, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{status}: {error}")
        self.status = status
        self.error = error


class SandboxProcess:
    """A running sandbox. ``url`` has no slash at the end."""

    def __init__(self, *, process: subprocess.Popen[str], url: str, data_dir: Path) -> None:
        self.process = process
        self.url = url
        self.data_dir = data_dir

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_sandbox/{path}", data=data, method=method)
        try:
            with _OPENER.open(request, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SandboxRefused(status=error.code, error=json.load(error)["error"]) from None

    def _list(self, name: str, filters: dict[str, Any]) -> list[dict[str, Any]]:
        """The whole list: pages of the control API are 1000 rows long."""
        given = {key: value for key, value in filters.items() if value is not None}
        found: list[dict[str, Any]] = []
        key = "id" if name == "events" else "seq"
        while True:
            rows = self._call("GET", f"{name}?{urllib.parse.urlencode(given)}")["data"]
            found += rows
            if len(rows) < 1000:
                return found
            given["after"] = rows[-1][key]

    def ledger(self, **filters: Any) -> list[dict[str, Any]]:
        """Effects, oldest first; filters: identity, operation, wire_key, system, object, after."""
        return self._list("ledger", filters)

    def requests(self, **filters: Any) -> list[dict[str, Any]]:
        """Requests on the wire, oldest first; filters: identity, operation, wire_key, system, after."""
        return self._list("requests", filters)

    def events(self) -> list[dict[str, Any]]:
        """Deliveries of events, oldest first."""
        return self._list("events", {})

    def faults(self, *specs: dict[str, Any]) -> list[dict[str, Any]]:
        """Queue faults, e.g. ``{"mode": "execute_and_timeout", "operation": "billing.credit_notes.create"}``."""
        return list(self._call("POST", "faults", {"faults": list(specs)})["data"])

    def listed_faults(self) -> list[dict[str, Any]]:
        """All queued faults with how often each was used."""
        return list(self._call("GET", "faults")["data"])

    def clear_faults(self) -> None:
        """Inject nothing more."""
        self._call("DELETE", "faults")

    def modes(self) -> list[dict[str, Any]]:
        """What can be injected."""
        return list(self._call("GET", "modes")["data"])

    def world(self, world: dict[str, Any] | None = None) -> dict[str, Any]:
        """Load a world (see agentops/sandbox/world.py), or without one read what is there now."""
        return dict(self._call("GET", "world") if world is None else self._call("POST", "world", world))

    def correct(self, invoice: str, *, total_minor: int, reason: str = "corrected") -> dict[str, Any]:
        """Finance corrects an invoice (id or number); returns the revision that replaces it."""
        path = f"invoices/{urllib.parse.quote(invoice, safe='')}/correct"
        return dict(self._call("POST", path, {"total_minor": total_minor, "reason": reason}))

    def pay(self, invoice: str) -> dict[str, Any]:
        """The customer pays an invoice (id or number)."""
        return dict(self._call("POST", f"invoices/{urllib.parse.quote(invoice, safe='')}/pay"))

    def touch(self, ticket: str) -> dict[str, Any]:
        """Somebody else edits a ticket."""
        return dict(self._call("POST", f"tickets/{urllib.parse.quote(ticket, safe='')}/touch"))

    def edit(self, kind: str, id: str, **changes: Any) -> dict[str, Any]:
        """Somebody changes a plan, an account or an incident."""
        return dict(self._call("POST", "records", {"kind": kind, "id": id, "set": changes}))

    def settings(self, **values: Any) -> dict[str, Any]:
        """Set webhook_url or key_retention_seconds; returns all settings."""
        return dict(self._call("POST", "settings", values))

    def stop(self) -> None:
        """End it in an orderly way; killed when that takes too long."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._reap()

    def kill(self) -> None:
        """SIGKILL: no chance to finish anything."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        self.process.wait(timeout=120)
        if self.process.stdout:
            self.process.stdout.close()


def start(
    data_dir: Path,
    port: int = 0,
    *,
    webhook_url: str | None = None,
    api_key: str = API_KEY,
    token: str = TOKEN,
    webhook_secret: str = WEBHOOK_SECRET,
) -> SandboxProcess:
    """Start a sandbox on ``data_dir`` and return once it answers; port 0 picks a free one."""
    command = [sys.executable, "-m", "agentops.sandbox", "--port", str(port), "--data", str(data_dir)]
    command += ["--webhook-url", webhook_url] if webhook_url else []
    credentials = {
        "SANDBOX_API_KEY": api_key,
        "SANDBOX_TOKEN": token,
        "SANDBOX_WEBHOOK_SECRET": webhook_secret,
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SANDBOX_")}
    process = subprocess.Popen(command, cwd=_ROOT, env={**inherited, **credentials}, stdout=subprocess.PIPE, text=True)
    line = _first_line(process)
    if not line.startswith(_READY):
        process.kill()
        process.wait(timeout=120)
        raise RuntimeError(f"the sandbox did not start (it said {line!r}; its error output is above)")
    return SandboxProcess(process=process, url=line.removeprefix(_READY).strip(), data_dir=data_dir)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if selector.select(timeout=0.2):
                return process.stdout.readline()
            if process.poll() is not None:
                break
    return ""
