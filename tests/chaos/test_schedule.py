"""The schedule comes from the seed alone, and holds enough of everything before anything starts."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from agentops.chaos.course import AT_ONCE
from agentops.chaos.load import world
from agentops.chaos.scale import PARTS, BadScale, Scale, for_minutes
from agentops.chaos.schedule import CREDIT, EVENT_OTHERS, EVENT_SHARES, LOOKUP_AFTER, MODES, SHARES, make
from agentops.local.variables import ROOT
from agentops.sandbox.modes import MODES as KNOWN
from agentops.sandbox.wire import MAX_BODY_BYTES

DEFAULT, LONG = for_minutes(""), for_minutes("30")


def test_the_same_seed_gives_the_same_schedule_in_another_process_too() -> None:
    code = (
        "from agentops.chaos.scale import for_minutes; from agentops.chaos.schedule import make; import hashlib;"
        "print(hashlib.sha256(repr(make(seed=7, scale=for_minutes('3'))).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashing in ("1", "2")
    }
    assert len(found) == 1
    assert make(seed=7, scale=DEFAULT) == make(seed=7, scale=DEFAULT)
    assert make(seed=7, scale=DEFAULT) != make(seed=8, scale=DEFAULT)


@pytest.mark.parametrize("scale", [DEFAULT, LONG])
def test_the_sandbox_takes_the_customers_as_they_are_sent_to_it(scale: Scale) -> None:
    customers = make(seed=1, scale=scale).customers
    sent = [world(customers[first : first + AT_ONCE]) for first in range(0, len(customers), AT_ONCE)]
    assert max(len(json.dumps(one)) for one in sent) < MAX_BODY_BYTES / 2
    whole = len(json.dumps(world(customers)))
    assert (whole > MAX_BODY_BYTES) == (scale == LONG), "one body would have done"


@pytest.mark.parametrize("scale", [DEFAULT, LONG])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_there_is_more_of_everything_than_must_be_seen(scale: Scale, seed: int) -> None:
    schedule = make(seed=seed, scale=scale)
    faults = Counter(fault["mode"] for one in schedule.customers for fault in one.faults)
    assert set(faults) == set(MODES) <= set(KNOWN)
    assert min(faults.values()) > scale.least_faults
    operations = 3 * len(schedule.customers)
    assert operations >= scale.least_operations
    for mode, share in SHARES.items():
        assert faults[mode] == pytest.approx(operations * share, rel=0.01)
    for mode, share in EVENT_SHARES.items():
        assert faults[mode] == pytest.approx(len(schedule.customers) * share, rel=0.02)
    kills = Counter(one.part for one in schedule.blows if one.act == "kill" and one.at < scale.seconds - 5)
    assert set(kills) == set(PARTS)
    assert min(kills.values()) >= scale.least_kills
    pauses = [later.at - one.at for one, later in zip(schedule.blows, schedule.blows[1:], strict=False)]
    assert scale.gap[0] <= min(pauses) <= max(pauses) <= scale.gap[1]


def test_no_operation_meets_two_faults_on_its_first_call() -> None:
    """Two at once could be a receiver that breaks its contract, which nothing can survive."""
    for one in make(seed=4, scale=DEFAULT).customers:
        calls = Counter(
            fault["operation"]
            for fault in one.faults
            if fault["mode"] not in (*EVENT_SHARES, *EVENT_OTHERS, *LOOKUP_AFTER)
        )
        assert max(calls.values(), default=0) <= 1
        assert not one.twin or {fault["operation"] for fault in one.faults} <= {CREDIT, "billing.invoices.list"}


def test_a_lookup_finds_nothing_only_where_nothing_happened() -> None:
    for one in make(seed=5, scale=DEFAULT).customers:
        for place, fault in enumerate(one.faults):
            if fault["mode"] == "lookup_not_found":
                assert one.faults[place - 1]["mode"] in LOOKUP_AFTER["lookup_not_found"]
            if fault["mode"] == "lookup_stale":
                assert fault["params"]["seconds"] < 2  # the help desk settles within two seconds


@pytest.mark.parametrize("text", ["2", "601", "nan", "ten", "-3"])
def test_minutes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(BadScale, match="give a number of minutes from 3 to 600"):
        for_minutes(text)


def test_a_wrong_variable_is_named_before_anything_starts() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentops.chaos"],
        cwd=ROOT,
        env={**os.environ, "CHAOS_MINUTES": "3", "CHAOS_SEED": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "CHAOS_SEED is 'x': give the number that an earlier run printed"
