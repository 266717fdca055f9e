"""What a person sees of a run of chaos: the limits at the start, a line of progress, and the table at the end."""

import sys
import time
from collections.abc import Mapping

from agentops.chaos.judge import Verdict
from agentops.chaos.scale import PARTS, Scale
from agentops.chaos.schedule import MODES, Schedule
from agentops.chaos.stack import CHILDREN, WORKERS


def say(text: str = "") -> None:
    print(text, flush=True)


class Progress:
    """One line that is written over on a terminal, and a new one every ten seconds elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._last = -1e9

    def show(self, text: str) -> None:
        """Show `text` if it is time to."""
        now = time.monotonic()
        if now - self._last < (0.5 if self._live else 10):
            return
        self._last = now
        if self._live:
            print(f"\r\x1b[K{text}", end="", flush=True)
        else:
            say(text)

    def end(self) -> None:
        """Leave the line as it is and go to the next."""
        if self._live:
            say()


def opening(*, seed: int, scale: Scale, schedule: Schedule) -> str:
    """What is going to happen, with every limit that is not the product's own."""
    customers = schedule.customers
    blows = [one for one in schedule.blows if one.at < scale.seconds]
    kills = sum(one.act == "kill" for one in blows)
    corrections = sum(len(one.corrections) for one in customers)
    twins = sum(one.twin for one in customers)
    return "\n".join(
        [
            f"CHAOS_SEED={seed} gives this schedule again.",
            f"{scale.seconds / 60:g} min of storm: {len(customers)} customers ({twins} ask twice for one "
            f"credit), {3 * len(customers)} operations, {corrections} invoices corrected meanwhile,",
            f"{sum(len(one.faults) for one in customers)} faults, {kills} kills and {len(blows) - kills} freezes; "
            f"{len(WORKERS)} workers of {CHILDREN} processes. Then up to {scale.drain:.0f} s for the rest.",
            f"Limits shortened for this: lease {scale.lease:g} s (else 120), call {scale.call_limit:g} s (else 10). "
            "All others are the product's own:",
            "a call begins within 5 s, absence is proof 5 + 10 + 5 s after it (help desk: 5 + 10 + 2), hints again "
            "after 20 s.",
            "",
        ]
    )


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def table(*, verdict: Verdict, faults: Mapping[str, int], kills: Mapping[str, int], freezes: Mapping[str, int]) -> str:
    """The figures, the fault modes and blows that really happened, and what is wrong."""
    rows = [
        ("operations", f"{verdict.operations}"),
        ("decided by people", f"{verdict.asked}"),
        ("doubled effects", f"{len(verdict.doubled)}"),
        ("lost effects", f"{len(verdict.lost)}"),
        ("succeeded", f"{verdict.succeeded} ({verdict.share:.1%})"),
        ("not confirmed, with a case", f"{verdict.unconfirmed_with_case}"),
        ("runs stuck beyond two leases", f"{len(verdict.stuck)}"),
        ("runs unfinished, not with a person", f"{verdict.unfinished}"),
    ]
    lines = ["", *(f"{name:<36}{value:>14}" for name, value in rows), "", "faults that happened"]
    lines += [f"  {mode:<34}{faults.get(mode, 0):>14}" for mode in MODES]
    lines += ["", f"{'blows that were seen through':<36}{'killed':>14}{'frozen':>10}"]
    lines += [f"  {part:<34}{kills.get(part, 0):>14}{freezes.get(part, 0):>10}" for part in PARTS]
    lines += ["", *(f"FAILED: {one}" for one in verdict.failures)]
    lines += [f"DOES NOT COUNT: {one}" for one in verdict.too_little]
    if verdict.status == 0:
        lines.append("Passed: nothing doubled, nothing lost, nothing stuck.")
    return "\n".join(lines)
