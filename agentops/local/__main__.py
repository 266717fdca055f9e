"""``python -m agentops.local run``: the whole system on this machine. ``… exec COMMAND``: a command beside it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable

from agentops.local import variables
from agentops.local.console import Console
from agentops.local.errors import LocalStackError
from agentops.local.stack import Stack
from agentops.local.supervisor import supervise


def main() -> int:
    """Parse the command line and do as it says. The exit status is 0 after a stop that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m agentops.local", description="The whole system on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start everything and watch over it until Ctrl-C")
    execute = commands.add_parser("exec", help="start everything, run one command against it, stop everything")
    execute.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")
    arguments = parser.parse_args()
    if arguments.command == "exec":
        return reporting(lambda: _execute(arguments.argv))
    return reporting(lambda: supervise(_stack(console=Console())))


def reporting(action: Callable[[], int | None], /) -> int:
    """Do ``action`` and return its exit status (0 for None); a LocalStackError is printed, without a traceback: 1."""
    try:
        return action() or 0
    except LocalStackError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


def _stack(*, console: Console) -> Stack:
    given = variables.configured(os.environ)
    return Stack(variables.data_dir(os.environ), port=variables.port(os.environ), env=given, console=console)


def _execute(argv: list[str]) -> int:
    if not argv:
        raise LocalStackError("exec needs a command: python -m agentops.local exec python manage.py shell")
    with _stack(console=Console(quiet=True)) as stack:
        return subprocess.run(argv, env=variables.child_environment(stack.env), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
