"""A webhook receiver that keeps what arrives and answers as it is told."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import stripe

from tests.sandbox_process import API_KEY, WEBHOOK_SECRET


class Receiver:
    """``arrived`` holds (time, payload, Stripe-Signature) in order of arrival; ``statuses`` are answered in turn."""

    def __init__(self, *, url: str) -> None:
        self.url = url
        self.arrived: list[tuple[float, bytes, str]] = []
        self.statuses: list[int] = []
        self.answered = 0
        self.before_answer: Callable[[], None] = lambda: None

    def wait(self, count: int) -> list[tuple[float, bytes, str]]:
        """Return what arrived once there are ``count``; fails the test when they do not come."""
        deadline = time.monotonic() + 120
        while len(self.arrived) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(self.arrived) >= count, f"{len(self.arrived)} of {count} events arrived"
        return list(self.arrived)


def event_of(delivery: tuple[float, bytes, str]) -> Any:
    """The event, its signature checked by the official library."""
    client = stripe.StripeClient(API_KEY)
    return client.construct_event(delivery[1], delivery[2], WEBHOOK_SECRET)


@contextmanager
def running() -> Iterator[Receiver]:
    """A receiver on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            payload = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.arrived.append((time.monotonic(), payload, self.headers["Stripe-Signature"]))
            receiver.before_answer()
            receiver.answered += 1
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(url=f"http://127.0.0.1:{server.server_address[1]}/hook")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
