"""A worker that takes whatever run is due, as the relay and Celery would hand it out, until it is killed.

Arguments: the database's address and the stub's.
"""

import random
import sys
import time


def main(database: str, stub_url: str) -> None:
    import django

    django.setup()
    import dj_database_url
    from django.db import connection, connections

    from agentops import engine
    from agentops.relay import _DUE
    from reconciliation.services import gates
    from tests.limits import stub

    parsed = dj_database_url.parse(database)
    kept = {key: parsed[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    connections["default"].settings_dict.update(kept)
    gates.FIRST_PAUSE = 0.5
    stub.install(stub_url)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_DUE, [20])
            due = [row[0] for row in cursor.fetchall()]
        random.shuffle(due)
        for run_id in due[:3]:
            engine.advance(run_id=run_id)
        if not due:
            time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
