"""`python -m agentops.bench`: a throw-away stack, the plain workflow through its workers, and raw commits beside it."""

import os
import sys
import tempfile
from pathlib import Path

from agentops.local.stack import Stack

SETTINGS = "agentops.bench.settings"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        nowhere = "http://127.0.0.1:9"  # no system outside takes part
        env = {"DEMO": "0", "DJANGO_SETTINGS_MODULE": SETTINGS, "LOG_LEVEL": "WARNING"}
        env |= {"BILLING_URL": nowhere, "HELPDESK_URL": nowhere, "DEBUG": "0"}
        with Stack(Path(folder) / "data", env=env, processes=("worker", "relay")) as stack:
            os.environ.update(stack.env)
            import django

            django.setup()
            from agentops.bench import measure

            manager = measure.prepare()
            count = int(os.environ.get("BENCH_RUNS", "300"))
            measure.runs_per_second(count=20, manager=manager)
            print("runs/s", round(measure.runs_per_second(count=count, manager=manager), 1), flush=True)
            print(measure.latency(count=30, manager=manager), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
