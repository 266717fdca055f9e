"""The stack that is beaten: the product's own plan with two workers of four children, on a throw-away folder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agentops.chaos.scale import Scale
from agentops.local.console import Console
from agentops.local.plan import Entry, Program, product
from agentops.local.stack import Stack

WORKERS = ("worker-1", "worker-2")
CHILDREN = 4
PROGRAMS = ("sandbox", "web", *WORKERS, "relay")


class Journal(Console):
    """What the supervisor says goes into a file beside the logs, not between the lines of progress."""

    def __init__(self, *, path: Path) -> None:
        super().__init__(quiet=True)
        self.path = path

    def say(self, text: str, /, *, name: str = "stack") -> None:
        """See Console."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{name}: {text}\n")


def plan(env: Mapping[str, str], /) -> list[Entry]:
    """The product's plan with its worker replaced by several."""
    found: list[Entry] = []
    for entry in product(env):
        if isinstance(entry, Program) and entry.name == "worker":
            found += [_worker(entry, name) for name in WORKERS]
        else:
            found.append(entry)
    return found


def _worker(entry: Program, name: str) -> Program:
    return replace(entry, name=name, command=[*entry.command, "-n", f"{name}@%h", "--concurrency", str(CHILDREN)])


def build(*, folder: Path, scale: Scale) -> Stack:
    """The stack, not yet started. Commits survive a killed server; only a power cut would lose them."""
    settings = {
        "DEMO": "1",
        "DEMO_RUNS": "0",
        "LEASE_SECONDS": str(scale.lease),
        "CALL_LIMIT_SECONDS": str(scale.call_limit),
        "LOG_LEVEL": "WARNING",
    }
    journal = Journal(path=folder / "logs" / "supervisor.log")
    return Stack(folder, processes=PROGRAMS, env=settings, plan=plan, tests=True, console=journal)
