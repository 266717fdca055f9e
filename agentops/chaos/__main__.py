"""`python -m agentops.chaos`: CHAOS_MINUTES (3) of storm on a throw-away stack; CHAOS_SEED replays a schedule.

Exit status: 0 passed, 1 a promise was broken (or the stack could not go on), 2 too little happened for it to count or
the variables are wrong, 130 interrupted.
"""

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from agentops.chaos.scale import BadScale, Scale, for_minutes
from agentops.chaos.schedule import make
from agentops.local.errors import LocalStackError
from agentops.local.supervisor import StopRequested, ignore_signals, stop_on_signals


def main() -> int:
    try:
        scale, seed = for_minutes(os.environ.get("CHAOS_MINUTES", "")), _seed(os.environ.get("CHAOS_SEED", ""))
    except BadScale as problem:
        print(problem, file=sys.stderr)
        return 2
    return run(scale=scale, seed=seed)


def _seed(text: str) -> int:
    if not text:
        return random.SystemRandom().randrange(1_000_000)
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadScale(f"CHAOS_SEED is {text!r}: give the number that an earlier run printed")
    return int(text)


def run(*, scale: Scale, seed: int) -> int:
    """One run on a folder of its own, which is left there, with its logs, only if something went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="agentops-chaos-"))
    status = 1
    try:
        with stop_on_signals():
            status = _play(folder, scale=scale, seed=seed)
    except StopRequested as request:
        print(f"\nstopped ({request})", flush=True)
        status = 130
    except LocalStackError as problem:
        print(f"\n{problem}", file=sys.stderr)
    if status in (0, 130):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"Logs, database and ledger are kept in {folder}", flush=True)
    return status


def _play(folder: Path, *, scale: Scale, seed: int) -> int:
    from agentops.chaos.report import opening, say, table
    from agentops.chaos.stack import build

    schedule = make(seed=seed, scale=scale)
    say(opening(seed=seed, scale=scale, schedule=schedule))
    with build(folder=folder / "data", scale=scale) as stack:
        try:
            os.environ.update(stack.env)
            os.environ["DJANGO_SETTINGS_MODULE"] = "agentops.settings"
            import django

            django.setup()
            from agentops.chaos.course import Course

            outcome = Course(stack=stack, schedule=schedule, scale=scale).play()
            say(table(verdict=outcome.verdict, faults=outcome.faults, kills=outcome.kills, freezes=outcome.freezes))
            return outcome.verdict.status
        finally:
            ignore_signals()


if __name__ == "__main__":
    sys.exit(main())
