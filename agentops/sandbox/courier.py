"""The background thread that posts events to the webhook and does what billing does by itself."""

import hashlib
import hmac
import logging
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

from agentops.sandbox import moments
from agentops.sandbox.store import Store
from agentops.sandbox.wire import Doc

ATTEMPTS = 5
_POST_SECONDS = 5.0
_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 4.0)
_POLL_SECONDS = 0.2

log = logging.getLogger(__name__)

Job = Callable[[sqlite3.Connection, str], None]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        """A webhook goes to the address it was given; a redirect is a failed delivery."""


# Proxies from the environment are ignored: the receiver is on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


def signature(*, secret: str, at: int, body: bytes) -> str:
    """The ``Stripe-Signature`` header: ``t=<at>,v1=<hex HMAC-SHA256 of "<at>.<body>">``."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class Courier:
    """Delivers what is due, in order, trying each at most ``ATTEMPTS`` times; the queue survives restarts."""

    def __init__(self, *, store: Store, secret: str, jobs: dict[str, Job]) -> None:
        self._store = store
        self._secret = secret
        self._jobs = jobs
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        """Begin delivering."""
        self._thread.start()

    def stop(self) -> None:
        """End after the delivery under way; what is left stays queued."""
        self._stopping = True
        self._woken.set()
        self._thread.join(timeout=_POST_SECONDS + 1)

    def wake(self) -> None:
        """Look at the queue now instead of at the next poll."""
        self._woken.set()

    def deliver_for(self, *, request_seq: int) -> None:
        """Try every delivery of one call once, now, in the caller's thread."""
        while delivery := self._claim(request_seq=request_seq):
            self._post(delivery=delivery)

    def _run(self) -> None:
        while not self._stopping:
            try:
                busy = self._do_job()
                delivery = self._claim()
                if delivery:
                    self._post(delivery=delivery)
            except sqlite3.Error:
                # A locked or full file must not end deliveries for good; the cause is on stderr.
                log.exception("the courier could not use the store")
                busy, delivery = False, None
            if not busy and delivery is None:
                self._woken.wait(timeout=_POLL_SECONDS)
                self._woken.clear()

    def _do_job(self) -> bool:
        due = "SELECT * FROM jobs WHERE done = 0 AND due_at <= ? ORDER BY due_at LIMIT 1"
        with self._store.read() as db:
            if db.execute(due, (moments.now(),)).fetchone() is None:
                return False
        with self._store.write() as db:
            job = db.execute(due, (moments.now(),)).fetchone()
            if job is None:
                return False
            self._jobs[job["kind"]](db, job["target"])
            db.execute("UPDATE jobs SET done = 1 WHERE id = ?", (job["id"],))
        return True

    def _claim(self, *, request_seq: int | None = None) -> sqlite3.Row | None:
        """Take one due delivery for a short lease, so that no other thread or process sends it meanwhile."""
        now = moments.now()
        if request_seq is None:
            condition, params = "due_at <= ? AND claimed_until <= ?", [now, now]
        else:
            condition, params = "request_seq = ? AND attempts = 0", [float(request_seq)]
        query = f"SELECT id FROM deliveries WHERE state = 'pending' AND {condition} ORDER BY due_at, id LIMIT 1"
        with self._store.read() as db:
            if db.execute(query, params).fetchone() is None:
                return None
        with self._store.write() as db:
            row: sqlite3.Row | None = db.execute(
                f"UPDATE deliveries SET claimed_until = ?, attempts = attempts + 1 WHERE id = ({query}) RETURNING *",
                [now + 2 * _POST_SECONDS, *params],
            ).fetchone()
            return row

    def _post(self, *, delivery: sqlite3.Row) -> None:
        body = delivery["body"].encode()
        at = int(moments.now())
        secret = self._secret if delivery["signing"] == "valid" else f"not-{self._secret}"
        status, error = _send(url=delivery["url"], body=body, header=signature(secret=secret, at=at, body=body))
        delivered = status is not None and 200 <= status < 300
        state = "delivered" if delivered else "failed" if delivery["attempts"] >= ATTEMPTS else "pending"
        now = moments.now()
        due = now + _BACKOFF_SECONDS[min(delivery["attempts"], len(_BACKOFF_SECONDS)) - 1]
        with self._store.write() as db:
            db.execute(
                "UPDATE deliveries SET state = ?, last_at = ?, last_status = ?, last_error = ?, due_at = ?,"
                " claimed_until = 0, held = 0 WHERE id = ?",
                (state, now, status, error, due, delivery["id"]),
            )
            if delivered:
                db.execute(
                    "UPDATE deliveries SET held = 0, due_at = ? WHERE held = 1 AND state = 'pending' AND id < ?",
                    (now, delivery["id"]),
                )


def _send(*, url: str, body: bytes, header: str) -> tuple[int | None, str | None]:
    """Post one event. Returns the receiver's status, or None and what went wrong."""
    request = urllib.request.Request(
        url, data=body, method="POST", headers={"Content-Type": "application/json", "Stripe-Signature": header}
    )
    try:
        with _OPENER.open(request, timeout=_POST_SECONDS) as answer:
            return int(answer.status), None
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, None
    except (OSError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}"[:300]


def listed(*, row: sqlite3.Row) -> Doc:
    """A delivery as the API lists it."""
    names = ("id", "event", "type", "url", "signing", "fault", "state", "attempts", "last_status", "last_error")
    return {
        **{name: row[name] for name in names},
        "due_at": moments.iso(at=row["due_at"]),
        "last_at": moments.iso(at=row["last_at"]) if row["last_at"] else None,
    }
