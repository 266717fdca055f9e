"""The verdict: the sandbox's ledger against what the product says it did. Pure.

Effects are counted by business key as the ledger itself tells it, whatever identity or key they came under: one credit
for an account and an incident, one change and one reply for a ticket.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentops.chaos.scale import PARTS, Scale
from agentops.chaos.schedule import MODES

NOTHING_HAPPENED = frozenset({"failed", "abandoned"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One thing that really happened; `identity` is the one it came under."""

    key: str
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An operation as the product has it. `asked`: people decided it; `has_case`: an unresolved case is about it."""

    key: str
    identity: str
    state: str
    asked: bool = False
    has_case: bool = False
    chain: tuple[tuple[str, str], ...] = ()  # the edges in its record, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run as the product has it. `at_rest`: over, or visibly with a person. `overdue` is how long, in seconds, it has
    been due or leased without anybody having touched it."""

    run: str
    state: str
    at_rest: bool
    overdue: float = 0.0
    record_breaks_at: int | None = None
    chain: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything the verdict rests on. `faults` and `kills` are those that really happened; `doubled_starts` are keys
    of the API that were answered with more than one run, or made more than one."""

    effects: Sequence[Effect]
    made: Sequence[Made]
    runs: Sequence[Ran]
    wanted: int
    faults: Mapping[str, int]
    kills: Mapping[str, int]
    doubled_starts: Sequence[str] = ()
    edges: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`failures` are broken promises, `too_little` says why the run does not count; both in sentences."""

    operations: int
    asked: int
    doubled: tuple[str, ...]
    lost: tuple[str, ...]
    stuck: tuple[str, ...]
    unfinished: int
    unconfirmed_with_case: int
    succeeded: int
    share: float
    failures: tuple[str, ...]
    too_little: tuple[str, ...]

    @property
    def status(self) -> int:
        """The exit status: 0 passed, 1 a promise was broken, 2 too little happened for the run to count."""
        return 1 if self.failures else 2 if self.too_little else 0


def judge(*, seen: Seen, scale: Scale) -> Verdict:
    """Compare, and say what is wrong."""
    effects = Counter(one.key for one in seen.effects)
    doubled = tuple(sorted(f"{key}: {count} effects" for key, count in effects.items() if count > 1))
    lost = tuple(sorted(_lost(seen)))
    stuck = tuple(
        f"run {one.run} is {one.state}, untouched for {one.overdue:.0f} s"
        for one in seen.runs
        if not one.at_rest and one.overdue > 2 * scale.lease
    )
    happened = {one.identity for one in seen.effects}
    good = {one.key for one in seen.made if one.state == "succeeded" and one.identity in happened}
    succeeded = sum(1 for key in good if effects[key] == 1)
    share = succeeded / seen.wanted if seen.wanted else 0.0
    broken = _broken_records(seen)
    failures = [
        *_said(doubled, "doubled effects"),
        *_said(lost, "lost effects"),
        *_said(stuck, "runs stuck beyond two leases"),
        *_said(broken, "records that do not hold"),
        *_said(seen.doubled_starts, "keys that started more than one run"),
    ]
    unfinished = sum(1 for one in seen.runs if not one.at_rest)
    if unfinished:
        failures.append(f"{unfinished} runs were neither over nor with a person when the time was over")
    if share < scale.least_succeeded:
        failures.append(f"{share:.1%} of the operations succeeded; {scale.least_succeeded:.0%} must")
    return Verdict(
        operations=len(seen.made),
        asked=sum(1 for one in seen.made if one.asked),
        doubled=doubled,
        lost=lost,
        stuck=stuck,
        unfinished=unfinished,
        unconfirmed_with_case=sum(
            1 for one in seen.made if one.state in ("sending", "unknown", "accepted") and one.has_case
        ),
        succeeded=succeeded,
        share=share,
        failures=tuple(failures),
        too_little=tuple(_too_little(seen, scale)),
    )


def _lost(seen: Seen) -> Iterable[str]:
    """What the product believes happened and did not, and what happened of which it believes or knows nothing."""
    happened = {one.identity for one in seen.effects}
    made = {one.identity: one for one in seen.made}
    for one in seen.made:
        if one.state == "succeeded" and one.identity not in happened:
            yield f"{one.key}: said to have succeeded, and the ledger has nothing ({one.identity})"
    for effect in seen.effects:
        known = made.get(effect.identity)
        if known is None:
            yield f"{effect.key}: in the ledger without an operation ({effect.identity or 'no identity'})"
        elif known.state in NOTHING_HAPPENED or known.state == "authorised":
            yield f"{effect.key}: in the ledger, and the operation is {known.state} ({effect.identity})"
        elif known.key != effect.key:
            yield f"{effect.key}: came under the identity of {known.key} ({effect.identity})"


def _broken_records(seen: Seen) -> list[str]:
    found = [
        f"run {one.run}: its record breaks at {one.record_breaks_at}"
        for one in seen.runs
        if one.record_breaks_at is not None
    ]
    for machine, name, first, state, chain in [
        *(("operation", one.identity, "authorised", one.state, one.chain) for one in seen.made),
        *(("run", one.run, "queued", one.state, one.chain) for one in seen.runs),
    ]:
        at = first
        for source, target in chain:
            if source != at or (source, target) not in seen.edges.get(machine, frozenset()):
                found.append(f"{machine} {name}: its record goes from {source} to {target} while it was {at}")
            at = target
        if at != state:
            found.append(f"{machine} {name}: its record ends at {at} and it is {state}")
    return found


def _said(found: Sequence[str], what: str) -> list[str]:
    """The first few of a kind as one sentence, or nothing."""
    if not found:
        return []
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return [f"{len(found)} {what}: {'; '.join(found[:5])}{more}"]


def _too_little(seen: Seen, scale: Scale) -> Iterable[str]:
    if len(seen.made) < scale.least_operations:
        yield f"{len(seen.made)} operations; {scale.least_operations} are needed"
    for mode in MODES:
        if seen.faults.get(mode, 0) < scale.least_faults:
            yield f"{seen.faults.get(mode, 0)} of the fault {mode}; {scale.least_faults} are needed"
    for part in PARTS:
        if seen.kills.get(part, 0) < scale.least_kills:
            yield f"{seen.kills.get(part, 0)} kills of {part}; {scale.least_kills} are needed"
