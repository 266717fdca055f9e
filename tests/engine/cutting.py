"""A door to PostgreSQL that breaks connections at a COMMIT: before the server sees it, or before its answer is seen."""

import contextlib
import random
import selectors
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

COMMIT = b"COMMIT\x00"


class CuttingDoor:
    """Listens in `folder` as a server would. One COMMIT in five or so ends its connection: `landed` or not."""

    def __init__(self, *, folder: Path, server: Path, seed: int, landed: bool) -> None:
        self.dice, self.landed, self.server = random.Random(seed), landed, server
        self.commits = self.cuts = 0
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / server.name))
        self.listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _is_cut(self) -> bool:
        with self.lock:
            self.commits += 1
            cut = self.dice.random() < 0.2
            self.cuts += cut
            return cut

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, selectors.DefaultSelector() as ready:
            server.connect(str(self.server))
            for one in (client, server):
                ready.register(one, selectors.EVENT_READ)
            with contextlib.suppress(OSError):
                while True:
                    for key, _ in ready.select():
                        source = key.fileobj
                        assert isinstance(source, socket.socket)
                        data = source.recv(65536)
                        if not data:
                            return
                        if source is client and COMMIT in data and self._is_cut():
                            if self.landed:
                                server.sendall(data)
                                server.recv(65536)  # it is done, and nobody is told
                            return
                        (server if source is client else client).sendall(data)

    def close(self) -> None:
        self.listener.close()


@contextlib.contextmanager
def cutting_door(*, folder: Path, server: Path, seed: int, landed: bool) -> Iterator[CuttingDoor]:
    door = CuttingDoor(folder=folder, server=server, seed=seed, landed=landed)
    try:
        yield door
    finally:
        door.close()
