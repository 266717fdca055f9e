"""Trivial programs in the place of the product's, so that the stack itself is what is tested.

``python -m tests.local.stand_ins DATA PORT [die]`` runs a supervised stack of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from agentops.local import supervisor
from agentops.local.__main__ import reporting
from agentops.local.console import Console
from agentops.local.plan import Entry, Plan, Program, Step
from agentops.local.stack import Stack

# Notes when it starts and when it is told to end, in a file whose order tells the order.
NOTING = """
import os, pathlib, signal, sys, time
notes = pathlib.Path(os.environ["AGENTOPS_DATA"], "notes")
def note(text):
    with notes.open("a") as file:
        file.write(f"{sys.argv[1]} {text}\\n")
def end(number, frame):
    note("stop")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
note("start")
print(sys.argv[1], "is ready.", flush=True)
"""
WAITING = NOTING + "time.sleep(120)"
WITH_CHILD = "import subprocess\n" + NOTING + "subprocess.Popen(['sleep', '120']); time.sleep(120)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, lambda number, frame: print("asked to end", flush=True))
print("ready.", flush=True)
while True:
    time.sleep(1)
"""
QUERY = """
import os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    print("connected as", connection.info.user)
"""


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def web(env: Mapping[str, str]) -> Program:
    command = [sys.executable, "-m", "http.server", env["PORT"], "--bind", "127.0.0.1"]
    return Program("web", command, ready_url=f"http://127.0.0.1:{env['PORT']}/")


def usual(env: Mapping[str, str]) -> list[Entry]:
    return [
        Step("migrate", python(QUERY), {"DATABASE_URL": env["OWNER_DATABASE_URL"]}),
        Program("sandbox", python(WAITING, "sandbox"), ready_line="ready."),
        web(env),
        Program("worker", python(WITH_CHILD, "worker"), ready_line="ready."),
        Program("relay", python(WAITING, "relay"), ready_line="ready."),
    ]


def dying(env: Mapping[str, str]) -> list[Entry]:
    return [Program("relay", python("import time; time.sleep(0.5); raise SystemExit(3)"))]


def main() -> int:
    plan: Plan = usual
    if sys.argv[3:] == ["die"]:
        plan, supervisor.FIRST_WAIT = dying, 0.02
    stack = Stack(Path(sys.argv[1]), port=int(sys.argv[2]), plan=plan, tests=True, console=Console())
    return reporting(lambda: supervisor.supervise(stack))


if __name__ == "__main__":
    sys.exit(main())
