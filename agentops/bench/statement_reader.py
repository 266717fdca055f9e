"""`python -m agentops.bench.statement_reader NUMBER`: one statement to its end, and what that took, as JSON."""

import json
import resource
import sys
import time

import django

SECONDS = 5.0  # at one go, as in a worker


def main(number: int) -> None:
    """Seconds in all, of each part and of processor time; and the peak of resident memory in MB, the product itself
    included."""
    django.setup()
    from django.db import connection

    from reconciliation.models import Statement
    from reconciliation.services import statement_reading
    from runs import clock

    found = Statement.objects.get(pk=number)
    began, took, cpu = clock.read(), time.monotonic(), time.process_time()
    while found.finished_at is None:
        if not statement_reading.work(number=number, seconds=SECONDS):
            raise SystemExit(f"{found.label} does not go on: {found.problem}")
        found.refresh_from_db()
    assert found.read_at is not None and found.matched_at is not None
    told = {
        "took": time.monotonic() - took,
        "cpu": time.process_time() - cpu,
        "reading": (found.read_at - began).total_seconds(),
        "matching": (found.matched_at - found.read_at).total_seconds(),
        "comparing": (found.finished_at - found.matched_at).total_seconds(),
    }
    told["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    connection.close()
    print(json.dumps(told))


if __name__ == "__main__":
    main(int(sys.argv[1]))
