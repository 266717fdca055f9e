"""Every fault that can be put on a call of ours, at every tool that has an effect: which test has it. One that is new
is missed here until some test lets it happen and asks the ledger."""

import importlib
from collections.abc import Iterable, Iterator

import pytest

from agentops.sandbox.billing.operations import OPERATIONS as BILLING
from agentops.sandbox.helpdesk.operations import OPERATIONS as HELPDESK
from agentops.sandbox.modes import MODES
from runs.tools.registry import TOOLS
from tests.engine import test_answers, test_ticket

# the operation there that has the effect, and the one that is asked what became of it
OPERATIONS = {
    "billing.create_credit": ("billing.credit_notes.create", "billing.credit_notes.list"),
    "billing.void_credit": ("billing.credit_notes.void", "billing.events.list"),
    "helpdesk.update_ticket": ("helpdesk.tickets.update", "helpdesk.tickets.changes"),
    "helpdesk.draft_reply": ("helpdesk.drafts.create", "helpdesk.drafts.list"),
}
LOOKUPS = ("lookup_not_found", "lookup_stale", "lookup_error")
TICKET = {mode for mode, _ in test_ticket.MODES}
COVERED: dict[str, dict[str, Iterable[str]]] = {
    "billing.create_credit": {
        "engine.test_answers.test_one_fault_at_the_credit": {mode for mode, *_ in test_answers.MODES},
        "engine.test_lookups.test_a_lookup_that_misses_what_is_there_makes_no_second_credit": LOOKUPS[:2],
        "engine.test_lookups.test_unreachable_is_not_absent": LOOKUPS[2:],
        "engine.test_lookups.test_another_amount_than_was_sent_goes_to_a_person_with_the_real_one": ["wrong_amount"],
        "engine.test_lookups.test_a_credit_on_another_account_is_never_taken_for_absent": ["wrong_account"],
        "desk.test_accepted.test_it_is_no_success_until_they_say_so": ["accepted_outcome_later"],
    },
    "billing.void_credit": {
        "undoing.test_faults.test_a_fault_at_the_void": TICKET,
        "undoing.test_faults.test_a_lookup_that_fails_after_a_lost_answer_voids_nothing_twice": LOOKUPS,
    },
    "helpdesk.update_ticket": {
        "engine.test_ticket.test_a_fault_at_the_ticket_and_at_the_draft": TICKET,
        "engine.test_ticket.test_lookups_that_fail_after_lost_answers": LOOKUPS,
        "engine.test_ticket.test_the_ticket_was_touched_in_between": ["precondition"],
        "engine.test_ticket.test_another_ticket_was_changed_and_nothing_is_sent_again": ["wrong_account"],
    },
    "helpdesk.draft_reply": {
        "engine.test_ticket.test_a_fault_at_the_ticket_and_at_the_draft": TICKET,
        "engine.test_ticket.test_lookups_that_fail_after_lost_answers": LOOKUPS,
        "engine.test_ticket.test_a_draft_on_another_ticket_is_a_persons": ["wrong_account"],
    },
}
# what these change is an event, which settles nothing: `tests/undoing/test_told.py`; the help desk sends none
TOLD_ONLY = {"ok", "event_before_response", "accepted_then_failed_event"} | {
    mode.name for mode in MODES.values() if mode.on_events
}


def possible(tool: str) -> Iterator[str]:
    """The faults that can be put on the tool's calls and on its lookups."""
    traits = {one.name: one.traits for one in (*BILLING, *HELPDESK)}
    call, lookup = OPERATIONS[tool]
    for mode in MODES.values():
        if mode.name not in TOLD_ONLY and (
            mode.applies_to in traits[call] or (mode.applies_to == "read" and "read" in traits[lookup])
        ):
            yield mode.name


@pytest.mark.parametrize("tool", OPERATIONS)
def test_each_fault_at_each_tool_has_its_test(tool: str) -> None:
    covered = COVERED[tool]
    assert set(possible(tool)) - {mode for modes in covered.values() for mode in modes} == set()
    for name in covered:
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(f"tests.{module}"), function)), name


def test_no_tool_is_left_out() -> None:
    assert set(OPERATIONS) == set(TOOLS)
