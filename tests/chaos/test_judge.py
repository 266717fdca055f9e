"""The judge finds what it is there to find: each broken promise, alone, in an otherwise good run."""

from dataclasses import replace

import pytest

from agentops.chaos.judge import Effect, Made, Ran, Seen, Verdict, judge
from agentops.chaos.report import table
from agentops.chaos.scale import PARTS, Scale
from agentops.chaos.schedule import MODES

SCALE = Scale(
    seconds=1, customers=20, gap=(1, 2), drain=1, least_operations=60, least_faults=2, least_kills=1, lease=10
)
EDGES = {
    "operation": frozenset(
        {
            ("authorised", "sending"),
            ("sending", "succeeded"),
            ("sending", "unknown"),
            ("sending", "failed"),
            ("unknown", "succeeded"),
        }
    ),
    "run": frozenset({("queued", "gathering"), ("gathering", "completed"), ("gathering", "needs_person")}),
}
SENT = (("authorised", "sending"), ("sending", "succeeded"))
DONE = (("queued", "gathering"), ("gathering", "completed"))


def good() -> Seen:
    keys = [f"{kind}/{number}" for number in range(20) for kind in ("credit/ACC", "ticket", "reply")]
    return Seen(
        effects=[Effect(key=key, identity=f"id-{key}") for key in keys],
        made=[
            Made(key=key, identity=f"id-{key}", state="succeeded", asked=key.startswith("credit"), chain=SENT)
            for key in keys
        ],
        runs=[Ran(run=str(number), state="completed", at_rest=True, chain=DONE) for number in range(20)],
        wanted=60,
        faults=dict.fromkeys(MODES, 2),
        kills=dict.fromkeys(PARTS, 1),
        edges=EDGES,
    )


def verdict(seen: Seen) -> Verdict:
    return judge(seen=seen, scale=SCALE)


def only_failure(seen: Seen) -> str:
    found = verdict(seen)
    assert found.status == 1
    assert len(found.failures) == 1, found.failures
    assert f"FAILED: {found.failures[0]}" in table(verdict=found, faults={}, kills={}, freezes={})
    return found.failures[0]


def test_a_good_run_passes() -> None:
    found = verdict(good())
    assert (found.status, found.failures, found.too_little) == (0, (), ())
    assert (found.operations, found.asked, found.succeeded, found.share) == (60, 20, 60, 1.0)
    assert "Passed" in table(verdict=found, faults={}, kills={}, freezes={})


@pytest.mark.parametrize("identity", ["id-credit/ACC/3", "id-another"])
def test_a_doubled_effect_is_found_by_its_business_key_under_whatever_identity(identity: str) -> None:
    seen = good()
    other = Made(key="credit/ACC/3", identity="id-another", state="succeeded", chain=SENT)
    made = [*seen.made, other] if identity == other.identity else seen.made
    more = [*seen.effects, Effect(key="credit/ACC/3", identity=identity)]
    assert only_failure(replace(seen, effects=more, made=made)) == "1 doubled effects: credit/ACC/3: 2 effects"


def test_a_success_that_the_ledger_lacks_is_a_lost_effect() -> None:
    seen = good()
    assert "said to have succeeded, and the ledger has nothing" in only_failure(replace(seen, effects=seen.effects[1:]))


@pytest.mark.parametrize("state", ["failed", "abandoned", "authorised"])
def test_an_effect_of_which_the_product_says_that_nothing_happened_is_lost(state: str) -> None:
    seen = good()
    chain = {"failed": (("authorised", "sending"), ("sending", "failed")), "abandoned": (), "authorised": ()}[state]
    first = replace(seen.made[0], state=state, chain=chain)
    edges = {**EDGES, "operation": EDGES["operation"] | {("authorised", "abandoned")}}
    if state == "abandoned":
        first = replace(first, chain=(("authorised", "abandoned"),))
    failure = only_failure(replace(seen, made=[first, *seen.made[1:]], edges=edges))
    assert f"in the ledger, and the operation is {state}" in failure


def test_an_effect_without_an_operation_and_one_under_anothers_identity_are_lost() -> None:
    seen = good()
    unknown = Effect(key="credit/ACC/99", identity="")
    assert "without an operation (no identity)" in only_failure(replace(seen, effects=[*seen.effects, unknown]))
    swapped = [replace(seen.effects[0], key="credit/ACC/98"), *seen.effects[1:]]
    found = verdict(replace(seen, effects=swapped))
    assert found.lost == ("credit/ACC/98: came under the identity of credit/ACC/0 (id-credit/ACC/0)",)


def test_a_run_beyond_two_leases_is_stuck_and_one_with_a_person_is_not() -> None:
    seen = good()
    late = Ran(run="late", state="gathering", at_rest=False, overdue=20.1, chain=DONE[:1])
    found = verdict(replace(seen, runs=[*seen.runs, late]))
    assert found.stuck == ("run late is gathering, untouched for 20 s",)
    assert found.status == 1
    person = (*DONE[:1], ("gathering", "needs_person"))
    waits = Ran(run="waits", state="needs_person", at_rest=True, overdue=999, chain=person)
    assert verdict(replace(seen, runs=[*seen.runs, waits])).status == 0


def test_a_run_that_never_ends_fails_although_something_is_always_recorded_about_it() -> None:
    seen = good()
    busy = Ran(run="busy", state="gathering", at_rest=False, overdue=1, chain=DONE[:1])
    failure = only_failure(replace(seen, runs=[*seen.runs, busy]))
    assert failure == "1 runs were neither over nor with a person when the time was over"


def test_too_few_successes_fail_and_what_is_with_an_admin_is_told() -> None:
    seen = good()
    unknown = (("authorised", "sending"), ("sending", "unknown"))
    made = [replace(one, state="unknown", has_case=True, chain=unknown) for one in seen.made[:4]]
    found = verdict(replace(seen, made=[*made, *seen.made[4:]]))
    assert found.unconfirmed_with_case == 4
    assert found.failures == ("93.3% of the operations succeeded; 95% must",)


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        ((("authorised", "succeeded"),), "its record goes from authorised to succeeded while it was authorised"),
        ((("sending", "succeeded"),), "its record goes from sending to succeeded while it was authorised"),
        ((("authorised", "sending"),), "its record ends at sending and it is succeeded"),
    ],
)
def test_a_record_that_skips_an_edge_is_found(chain: tuple[tuple[str, str], ...], said: str) -> None:
    seen = good()
    assert said in only_failure(replace(seen, made=[replace(seen.made[0], chain=chain), *seen.made[1:]]))


def test_a_gap_in_a_runs_record_and_a_doubled_start_are_found() -> None:
    seen = good()
    runs = [replace(seen.runs[0], record_breaks_at=7), *seen.runs[1:]]
    assert "run 0: its record breaks at 7" in only_failure(replace(seen, runs=runs))
    assert "keys that started more than one run: CH-1" in only_failure(replace(seen, doubled_starts=["CH-1"]))


def test_too_few_faults_kills_or_operations_do_not_count() -> None:
    seen = good()
    few = replace(seen, faults={**seen.faults, "overloaded": 1}, kills={**seen.kills, "postgres": 0})
    found = verdict(few)
    assert found.status == 2
    assert found.failures == ()
    assert found.too_little == ("1 of the fault overloaded; 2 are needed", "0 kills of postgres; 1 are needed")
    larger = judge(seen=seen, scale=replace(SCALE, least_operations=61))
    assert (larger.status, larger.too_little) == (2, ("60 operations; 61 are needed",))
