"""One run of chaos on a started stack: the storm, the calm after it, the verdict."""

import time
from collections import Counter
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, connection

from agentops.chaos import audit
from agentops.chaos.judge import Seen, Verdict, judge
from agentops.chaos.load import Approver, Starts, world
from agentops.chaos.report import Progress, clock, say
from agentops.chaos.scale import OPERATIONS_EACH, PARTS, SLOWEST, Scale
from agentops.chaos.schedule import Schedule
from agentops.chaos.storm import Storm
from agentops.demo.sandbox_client import SandboxClient
from agentops.local.stack import Stack
from agentops.local.supervisor import Watcher
from runs.models import Run
from runs.services import tokens

PAUSE = 0.1
AT_ONCE = 200  # customers put into the sandbox's world by one call, whose body has a limit
OVER = ("completed", "rejected", "cancelled", "failed", "needs_person")
MOSTLY = 0.8  # of the runs are over before the storm may be
LOOK = 2.0  # seconds between two looks at the tables while the rest is finishing


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    verdict: Verdict
    faults: Counter[str]
    kills: Counter[str]
    freezes: Counter[str]


class Course:
    """Runs in the main thread, which starts processes again; the world outside and the managers have their own."""

    def __init__(self, *, stack: Stack, schedule: Schedule, scale: Scale) -> None:
        self.stack, self.schedule, self.scale = stack, schedule, scale
        self.sandbox = SandboxClient(url=stack.sandbox_url, seconds=60)
        # what is killed on purpose is never given up, and waited for only a moment
        self.watcher = Watcher(stack=stack, limit=1_000_000, longest_wait=0.5)
        self.storm = Storm(stack=stack, watcher=self.watcher, blows=schedule.blows)
        self.progress = Progress()
        self.approver = Approver()
        self.starts = Starts(
            url=stack.url,
            token=tokens.issue(name="chaos", label="Chaos"),
            sandbox=self.sandbox,
            customers=schedule.customers,
            under_way=lambda: self.approver.states.total() - self._over(),
        )
        self.began = 0.0
        self.over_in_storm = 0

    def play(self) -> Outcome:
        """Storm, drain, verdict. Raises LocalStackError when the stack cannot go on."""
        everybody = self.schedule.customers
        for first in range(0, len(everybody), AT_ONCE):
            self.sandbox.post("world", world(everybody[first : first + AT_ONCE]))
        connection.close()
        try:
            self._storm()
            self._drain()
        finally:
            self.storm.calm()
            self.starts.stop()
            self.approver.stop()
            self.progress.end()
        return self._verdict()

    def _storm(self) -> None:
        """As long as the scale says; longer where the machine is too slow to get through the schedule in that time."""
        self.began = time.monotonic()
        self.starts.begin()
        self.approver.begin()
        while (elapsed := time.monotonic() - self.began) < self.scale.seconds * SLOWEST:
            killed = min(self.storm.kills[part] for part in PARTS) >= self.scale.least_kills
            through = self._over() >= MOSTLY * len(self.schedule.customers)
            if elapsed > self.scale.seconds and self.starts.is_done and killed and through:
                return
            self.watcher.look()
            self.storm.step(elapsed=elapsed)
            self._show(f"{clock(elapsed)} of {clock(self.scale.seconds)}")
            time.sleep(PAUSE)

    def _drain(self) -> None:
        """No more blows: let the rest finish, in bounded time. Faults that were drawn for operations still to come stay
        for them; only in the last quarter of the time is the world outside without any."""
        self.storm.calm()
        self.over_in_storm = self._over()
        begin, looked, faulty = time.monotonic(), 0.0, True
        while (now := time.monotonic()) < begin + self.scale.drain:
            self.watcher.look()
            self.storm.look()
            left = begin + self.scale.drain - now
            self._show(f"finishing, {left:.0f} s left at most")
            if faulty and left < self.scale.drain / 4:
                self.sandbox.delete("faults")
                faulty = False
            if now - looked > LOOK:
                looked = now
                if self.starts.is_done and not self.storm.hits and self._is_finished():
                    return
            time.sleep(PAUSE)

    def _over(self) -> int:
        return sum(self.approver.states[state] for state in OVER)

    def _is_finished(self) -> bool:
        try:
            known = Run.objects.filter(subject__startswith="CH-").count()
            return known >= len(self.starts.answers) and audit.under_way() == 0
        except (DatabaseError, InterfaceError):
            connection.close()
            return False

    def _show(self, when: str) -> None:
        states = self.approver.states
        over = states["completed"]
        people = states["needs_person"]
        self.progress.show(
            f"{when}  started {len(self.starts.answers)}, completed {over}, with a person {people}, under way "
            f"{sum(states.values()) - over - people}; votes {sum(self.approver.codes.values())}; "
            f"kills {self.storm.kills.total()}, freezes {self.storm.freezes.total()}"
        )

    def _verdict(self) -> Outcome:
        faults = audit.faults(self.sandbox)
        seen = Seen(
            effects=audit.effects(self.sandbox),
            made=audit.made(),
            runs=audit.ran(),
            wanted=OPERATIONS_EACH * len(self.schedule.customers),
            faults=faults,
            kills=self.storm.kills,
            doubled_starts=audit.starts_doubled(self.starts.answers),
            edges=audit.edges(),
        )
        say(
            f"\nStarts: {len(self.starts.answers)} keys, {self.starts.repeats} sent twice, {self.starts.retries} tried "
            f"again. Invoices corrected: {self.starts.corrected}. Votes: {_listed(self.approver.codes)}."
        )
        by_themselves = Counter(
            {what: count for what, count in self.watcher.ended.items() if not what.endswith("SIGKILL")}
        )
        say(f"Parts that ended without being killed: {_listed(by_themselves)}.")
        states = Counter(one.state for one in seen.runs)
        say(
            f"Runs: {_listed(states)}; {self.over_in_storm} of them were over when the storm was. Credits that billing "
            f"took back by itself: {audit.voided(self.sandbox)}."
        )
        return Outcome(
            verdict=judge(seen=seen, scale=self.scale),
            faults=faults,
            kills=self.storm.kills,
            freezes=self.storm.freezes,
        )


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
