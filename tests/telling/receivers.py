"""A mail server and a webhook receiver on loopback, with the manners that tests ask of them."""

import contextlib
import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Mailbox:
    """`refused` addresses get a 550; with `silent` set the server takes a mail and never answers."""

    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)
    to: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    silent: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)


class _Smtp(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        box: Mailbox = self.server.box  # type: ignore[attr-defined]
        self._say("220 ready")
        recipient = ""
        while line := self.rfile.readline():
            word = line.decode().strip()
            if word.upper().startswith("DATA"):
                self._say("354 go on")
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line[1:] if line.startswith(b"..") else line)
                message = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
                assert isinstance(message, EmailMessage)
                box.got.append(message)
                box.to.append(recipient)
                box.arrived.set()
                if box.silent:
                    box.let_go.wait(timeout=120)
                    return
                self._say("250 taken")
            elif word.upper().startswith("RCPT"):
                recipient = word.partition("<")[2].partition(">")[0]
                self._say("550 no such person" if recipient in box.refused else "250 fine")
            elif word.upper().startswith("QUIT"):
                self._say("221 bye")
                return
            else:
                self._say("250 fine")

    def _say(self, words: str) -> None:
        with contextlib.suppress(OSError):
            self.wfile.write(words.encode() + b"\r\n")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextlib.contextmanager
def mail_server(port: int = 0) -> Iterator[Mailbox]:
    with _Server(("127.0.0.1", port), _Smtp) as server:
        box = Mailbox(port=server.server_address[1])
        server.box = box  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield box
        finally:
            box.let_go.set()
            server.shutdown()
            thread.join()


@dataclass
class Hook:
    """What came in, as (headers, body); `answers` are statuses given in turn, each with headers, then 204 for ever."""

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)


class _Http(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        hook: Hook = self.server.hook  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        hook.got.append((dict(self.headers.items()), body))
        status, headers = hook.answers.pop(0) if hook.answers else (204, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Nothing on the test's output."""


@contextlib.contextmanager
def webhook() -> Iterator[Hook]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Http) as server:
        hook = Hook(url=f"http://127.0.0.1:{server.server_address[1]}/hook")
        server.hook = hook  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield hook
        finally:
            server.shutdown()
            thread.join()
