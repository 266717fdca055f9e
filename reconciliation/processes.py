"""Which process this is, and whether another of this machine has ended: evidence from the kernel, no database.

Linux only: elsewhere a process is never proved ended, and what depends on that proof goes to a person.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessName:
    host: str
    boot: str
    pid: int
    start_ticks: int


def boot() -> str:
    """The kernel's boot id with the pid namespace: within one such pair, pid and start ticks never recur."""
    try:
        namespace = os.readlink(PROC / "self/ns/pid")
        return f"{(PROC / 'sys/kernel/random/boot_id').read_text().strip()} {namespace}"
    except OSError:
        return f"unknown {socket.gethostname()}"


def kernel_of(name: str) -> str:
    """The kernel's boot id in what `boot` says; empty where it is not known."""
    kernel = name.partition(" ")[0]
    return "" if kernel == "unknown" else kernel


def _stat(pid: int) -> tuple[str, int] | None:
    """(state letter, start ticks) of a live or zombie process; None when there is none. See proc(5)."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name in brackets may hold anything
    return fields[0], int(fields[19])


def this_process() -> ProcessName:
    stat = _stat(os.getpid()) if PROC.is_dir() else None
    return ProcessName(socket.gethostname(), boot(), os.getpid(), stat[1] if stat else 0)


def is_running(name: ProcessName) -> bool:
    """True only with proof: the same kernel and namespace, and that very process is there and no corpse."""
    if name.boot != boot() or not kernel_of(name.boot) or not name.start_ticks:
        return False
    try:
        stat = _stat(name.pid)
    except PermissionError:
        return False
    return stat is not None and stat[1] == name.start_ticks and stat[0] not in "ZX"


def has_ended(name: ProcessName) -> bool:
    """True only with proof: the same kernel and namespace, and that process is gone or a corpse."""
    if name.boot != boot() or not kernel_of(name.boot) or not name.start_ticks:
        return False
    try:
        stat = _stat(name.pid)
    except PermissionError:
        return False
    return stat is None or stat[1] != name.start_ticks or stat[0] in "ZX"
