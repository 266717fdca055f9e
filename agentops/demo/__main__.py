"""`python -m agentops.demo [case.json]`: the reference case on a throw-away stack, told from start to end.

Exit status 0 only if the run completed and billing's ledger holds exactly one credit of the approved amount (for the
reference case 120000 minor units of USD).
"""

import os
import sys
import tempfile
from pathlib import Path

from agentops.local.errors import LocalStackError
from agentops.local.stack import Stack

REFERENCE = ("CS-8812", 120_000)


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print("usage: python -m agentops.demo [case.json]", file=sys.stderr)
        return 2
    from agentops.demo.case_file import BadCase, read_case  # after the usage check: it needs pydantic and Babel

    world, ticket, expected = None, REFERENCE[0], REFERENCE[1]
    if arguments:
        try:
            case = read_case(path=Path(arguments[0]))
        except BadCase as problem:
            print(problem, file=sys.stderr)
            return 2
        world, ticket, expected = case.world(), case.ticket, 0
    with tempfile.TemporaryDirectory(prefix="agentops-demo-") as folder:
        print("Starting a throw-away stack: PostgreSQL, Valkey, sandbox, web, worker, relay …", flush=True)
        settings = {"DEMO": "1", "DEMO_RUNS": "0", "CALL_LIMIT_SECONDS": "2"}
        try:
            with Stack(Path(folder) / "data", env=settings, tests=True) as stack:
                os.environ.update(stack.env)
                os.environ["DJANGO_SETTINGS_MODULE"] = "agentops.settings"
                import django

                django.setup()
                from agentops.demo.story import play

                return play(ticket=ticket, world=world, expected_minor=expected)
        except LocalStackError as problem:
            print(problem, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
