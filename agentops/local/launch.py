"""Start and stop one process so that it cannot outlive the one who started it.

On Linux the kernel sends the child a signal when the *thread* that started it ends (``setpriv --pdeathsig``), hence
the rule that only the main thread starts processes. Elsewhere a killed supervisor leaves its children, and the
folder's lock tells the next start.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentops.local.errors import LocalStackError


@dataclass(frozen=True)
class ServerUser:
    """The user a server runs as, where it isn't ourselves."""

    name: str
    uid: int
    gid: int


def server_user(*, data: Path) -> ServerUser | None:
    """Who runs PostgreSQL, which refuses to run as root: None for ourselves.

    As root: the owner of existing data, else ``nobody``. Raises LocalStackError if somebody else's data is there.
    """
    me = os.geteuid()
    owner = data.stat().st_uid if data.exists() else me
    if me != 0:
        if owner != me:
            raise LocalStackError(
                f"{data} belongs to another user (uid {owner}). "
                "Start as that user, or set AGENTOPS_DATA to another folder."
            )
        return None
    try:
        entry = pwd.getpwuid(owner) if owner != 0 else pwd.getpwnam("nobody")
    except KeyError:
        raise LocalStackError(
            f"PostgreSQL does not run as root, and there is no other user to run it as (looked for "
            f"{'nobody' if owner == 0 else f'uid {owner}, the owner of {data}'}). "
            "Start as an ordinary user, or set DATABASE_URL to a server of your own."
        ) from None
    return ServerUser(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def spawn(
    command: Sequence[str | Path],
    /,
    *,
    env: Mapping[str, str],
    cwd: Path,
    output: int,
    death_signal: signal.Signals = signal.SIGTERM,
    user: ServerUser | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start ``command`` in a session of its own, its output going to the descriptor ``output``.

    Raises RuntimeError outside the main thread and LocalStackError when the program cannot be started.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("start processes from the main thread: the kernel ties their life to the thread's")
    try:
        return subprocess.Popen(
            [*_prefix(death_signal=death_signal, user=user), *command],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except OSError as error:
        raise LocalStackError(f"{command[0]} cannot be started: {error.strerror}.") from error


def _prefix(*, death_signal: signal.Signals, user: ServerUser | None) -> list[str]:
    setpriv = shutil.which("setpriv", path=os.environ.get("PATH", "") + ":/usr/bin:/bin")
    if setpriv is None:
        if user is not None:
            raise LocalStackError(
                "Starting PostgreSQL as root needs the program setpriv (package util-linux). "
                "Install it, start as an ordinary user, or set DATABASE_URL to a server of your own."
            )
        return []
    identity = ["--reuid", str(user.uid), "--regid", str(user.gid), "--clear-groups", "--no-new-privs"] if user else []
    return [setpriv, "--pdeathsig", death_signal.name.removeprefix("SIG"), *identity]


def stop(process: subprocess.Popen[bytes], /, *, signals: Sequence[tuple[signal.Signals, float]]) -> int:
    """End ``process`` and return its exit status: each signal in turn, each with its seconds to act, then SIGKILL.

    The polite signals go to the process alone (it looks after its own children), SIGKILL to its whole session. A
    process that had ended before is left alone: its number may belong to somebody else by now.
    """
    if process.poll() is not None:
        return process.returncode
    for number, patience in signals:
        if process.poll() is not None:
            break
        process.send_signal(number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    kill_group(process)
    return process.wait(10)


def kill_group(process: subprocess.Popen[bytes], /) -> None:
    """SIGKILL what is left of the session that ``process`` leads: children too, which a dead leader cannot stop."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def session_members(leader: int, /) -> list[int]:
    """The other living processes of the session that ``leader`` leads, by /proc (none where there is no /proc)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in brackets, may hold spaces and brackets of its own; state and numbers follow the last one.
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[3]) == leader and fields[0] != "Z" and int(entry.name) != leader:
            found.append(int(entry.name))
    return sorted(found)
