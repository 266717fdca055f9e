"""`python -m agentops.bench`: a throw-away stack, the plain workflow through its workers, and raw commits beside it;
then the list of approvals with few and very many requests, and statements of few and very many lines.
`python -m agentops.bench inbox` is that part alone, `… statements` that one.

BENCH_RUNS (300) is how many runs a round takes, BENCH_ROUNDS (3) how often everything is measured, BENCH_PARKED
(10000,100000) with how many parked runs latency and memory are measured as well, BENCH_INBOX (1000,100000) with
how many requests the list is looked at, BENCH_LOOKS (20) how often in each way, BENCH_LINES (1000,100000) how
long the statements are.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from agentops.local.errors import LocalStackError
from agentops.local.stack import Stack

SETTINGS = "agentops.bench.settings"
NOWHERE = "http://127.0.0.1:9"  # no system outside takes part


PARTS = ("runs", "inbox", "statements")


def main(wanted: list[str]) -> int:
    parts = wanted or list(PARTS)
    if unknown := [one for one in parts if one not in PARTS]:
        print(f"There is no part {unknown[0]}; there are: {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    if len(parts) > 1:  # each in a process of its own, since Django is told of one database
        return max(
            subprocess.run([sys.executable, "-m", "agentops.bench", one], check=False).returncode for one in parts
        )
    try:
        return _measured(parts[0])
    except LocalStackError as problem:
        print(problem, file=sys.stderr)
        return 1


def _measured(part: str) -> int:
    """One part, with a stack of its own."""
    env = {"DEMO": "0", "DJANGO_SETTINGS_MODULE": SETTINGS, "LOG_LEVEL": "WARNING"}
    env |= {"BILLING_URL": NOWHERE, "HELPDESK_URL": NOWHERE}
    programs = ("web", "worker", "relay") if part == "runs" else ()
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        print(f"Starting a throw-away stack: PostgreSQL, Valkey{', '.join(['', *programs])} …", flush=True)
        with Stack(Path(folder) / "data", env=env, processes=programs) as stack:
            os.environ.update(stack.env)
            import django

            django.setup()
            if part == "runs":
                from agentops.bench import report

                count, rounds = int(os.environ.get("BENCH_RUNS", "300")), int(os.environ.get("BENCH_ROUNDS", "3"))
                parked = _numbers("BENCH_PARKED", "10000,100000")
                return report.measure_all(stack=stack, rounds=rounds, count=count, parked=parked)
            if part == "statements":
                from agentops.bench import report

                return report.measure_statements(stack=stack, lines=_numbers("BENCH_LINES", "1000,100000"))
            from agentops.bench import inbox

            return inbox.measure_inbox(stack=stack, numbers=_numbers("BENCH_INBOX", "1000,100000"))


def _numbers(name: str, default: str) -> list[int]:
    return [int(one) for one in os.environ.get(name, default).split(",") if one.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
