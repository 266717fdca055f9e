"""`python -m agentops.bench`: a throw-away stack, the plain workflow through its workers, and raw commits beside it.

BENCH_RUNS (300) is how many runs a round takes, BENCH_ROUNDS (3) how often everything is measured, BENCH_PARKED
(10000,100000) with how many parked runs latency and memory are measured as well.
"""

import os
import sys
import tempfile
from pathlib import Path

from agentops.local.errors import LocalStackError
from agentops.local.stack import Stack

SETTINGS = "agentops.bench.settings"
NOWHERE = "http://127.0.0.1:9"  # no system outside takes part


def main() -> int:
    rounds = int(os.environ.get("BENCH_ROUNDS", "3"))
    count = int(os.environ.get("BENCH_RUNS", "300"))
    parked = [int(one) for one in os.environ.get("BENCH_PARKED", "10000,100000").split(",") if one.strip()]
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        print("Starting a throw-away stack: PostgreSQL, Valkey, worker, relay, web …", flush=True)
        env = {"DEMO": "0", "DJANGO_SETTINGS_MODULE": SETTINGS, "LOG_LEVEL": "WARNING"}
        env |= {"BILLING_URL": NOWHERE, "HELPDESK_URL": NOWHERE}
        try:
            with Stack(Path(folder) / "data", env=env, processes=("web", "worker", "relay")) as stack:
                os.environ.update(stack.env)
                import django

                django.setup()
                from agentops.bench import report

                return report.measure_all(stack=stack, rounds=rounds, count=count, parked=parked)
        except LocalStackError as problem:
            print(problem, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
