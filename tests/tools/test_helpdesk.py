"""The help desk: versions, and what is read from it."""

import pytest

from runs.texts import storable
from runs.tools.base import NoSuchThing, Refused, Unreachable
from runs.tools.helpdesk.live import DraftReply, UpdateTicket
from runs.tools.helpdesk.sources import read_account, read_incident, read_sla, read_ticket
from runs.tools.registry import TOOLS, UnknownTool, contract, tool
from tests.outside import TIERS, Outside


def change(ticket: str, version: str = "1") -> dict[str, str]:
    return {"ticket": ticket, "ticket_version": version, "status": "pending", "resolution": "Credited"}


def test_a_ticket_that_moved_is_not_changed(outside: Outside) -> None:
    ticket = outside.customer()["ticket"]["id"]
    outside.process.touch(ticket)
    with pytest.raises(Refused) as raised:
        UpdateTicket(outside.helpdesk).send(effect=change(ticket), identity="h/moved", wire_key="h/moved:0")
    assert raised.value.code == "precondition_failed"
    assert outside.process.ledger(identity="h/moved") == []
    newest = read_ticket(connection=outside.helpdesk, ticket=ticket)
    assert (newest.version, newest.content["status"]) == ("2", "open")
    made = UpdateTicket(outside.helpdesk).send(effect=change(ticket, "2"), identity="h/again", wire_key="h/again:0")
    assert (made.reference, made.mismatch) == (f"{ticket} v3", {})


def test_a_ticket_that_moves_at_the_last_moment_is_not_changed(outside: Outside) -> None:
    ticket = outside.customer()["ticket"]["id"]
    outside.process.faults({"mode": "precondition", "operation": "helpdesk.tickets.update"})
    with pytest.raises(Refused) as raised:
        UpdateTicket(outside.helpdesk).send(effect=change(ticket), identity="h/race", wire_key="h/race:0")
    assert raised.value.code == "precondition_failed"
    assert outside.process.ledger(identity="h/race") == []


def test_a_repeat_after_success_gets_the_first_answer_not_a_conflict(outside: Outside) -> None:
    ticket = outside.customer()["ticket"]["id"]
    desk = UpdateTicket(outside.helpdesk)
    made = [desk.send(effect=change(ticket), identity="h/twice", wire_key="h/twice:0") for _ in range(2)]
    assert made[0].reference == made[1].reference
    assert len(outside.process.ledger(identity="h/twice")) == 1
    assert len(outside.process.requests(identity="h/twice", operation="helpdesk.tickets.update")) == 2


def test_a_later_change_by_somebody_else_leaves_our_record_as_it_was(outside: Outside) -> None:
    ticket = outside.customer()["ticket"]["id"]
    desk = UpdateTicket(outside.helpdesk)
    made = desk.send(effect=change(ticket), identity="h/mine", wire_key="h/mine:0")
    other = {**change(ticket, "2"), "status": "solved", "resolution": "Something else"}
    desk.send(effect=other, identity="h/theirs", wire_key="h/theirs:0")
    [found] = desk.look_up(effect=change(ticket), identity="h/mine").records
    assert (found.reference, found.mismatch) == (made.reference, {})


def test_drafts_are_found_on_all_pages(outside: Outside) -> None:
    ticket = outside.customer()["ticket"]["id"]
    desk = DraftReply(outside.helpdesk)
    effect = {"ticket": ticket, "subject": "Credit", "body": "Hello"}
    for number in range(101):
        desk.send(effect=effect, identity="h/many", wire_key=f"h/many:{number}")
    found = desk.look_up(effect=effect, identity="h/many")
    assert (len(found.records), found.pages) == (101, 2)


def test_what_is_read(outside: Outside) -> None:
    parts = outside.customer(ticket_messages=[{"from": "Ann", "at": "2026-10-23T08:00:00Z", "body": "Any news?"}])
    ticket = read_ticket(connection=outside.helpdesk, ticket=parts["ticket"]["id"])
    assert (ticket.authoritative, ticket.untrusted) == (False, True)
    assert ticket.content["messages"] == [{"from": "Ann", "at": "2026-10-23T08:00:00Z", "body": "Any news?"}]
    assert ticket.content["incident"] == parts["incident"]["id"]
    account = read_account(connection=outside.helpdesk, account=parts["account"]["id"])
    assert account.content["customer"] == parts["account"]["billing_customer"]
    incident = read_incident(connection=outside.helpdesk, incident=parts["incident"]["id"])
    assert (incident.version, incident.content["final"]) == ("5", True)
    assert incident.content["affected"] == [parts["account"]["id"]]
    schedule = read_sla(connection=outside.helpdesk, plan=parts["plan"]["id"])
    assert (schedule.version, schedule.content["tiers"]) == ("2026-02", TIERS)
    assert all(reading.authoritative for reading in (account, incident, schedule))


def test_text_that_no_database_keeps_is_made_fit(outside: Outside) -> None:
    parts = outside.customer(ticket_body="before\x00after", ticket_subject="</td><script>\nAmount: 1.00")
    ticket = read_ticket(connection=outside.helpdesk, ticket=parts["ticket"]["id"])
    assert ticket.content["body"] == "before\ufffdafter"
    assert ticket.content["subject"] == "</td><script>\nAmount: 1.00"


def test_text_is_made_fit_all_the_way_down() -> None:
    given = {"a\x00": ["\ud800x", {"b": "fine é 日本 😀"}], "n": 1, "t": True, "none": None}
    assert storable(given) == {"a\ufffd": ["\ufffdx", {"b": "fine é 日本 😀"}], "n": 1, "t": True, "none": None}


@pytest.mark.parametrize("name", ["CS-0", "..", ".", "", "a/b", "a?x=1", "%2e%2e", "é"])
def test_what_is_not_there_is_named(outside: Outside, name: str) -> None:
    before = len(outside.process.requests())
    with pytest.raises(NoSuchThing):
        read_ticket(connection=outside.helpdesk, ticket=name)
    made = outside.process.requests()[before:]
    assert all(request["operation"] == "helpdesk.tickets.retrieve" for request in made)


@pytest.mark.parametrize("mode", ["lookup_error", "reset_without_effect", "cut_body", "overloaded"])
def test_a_source_that_fails_is_unreachable(outside: Outside, mode: str) -> None:
    parts = outside.customer()
    outside.process.faults({"mode": mode, "operation": "helpdesk.*", "times": 4})
    for read in (
        lambda: read_ticket(connection=outside.helpdesk, ticket=parts["ticket"]["id"]),
        lambda: read_account(connection=outside.helpdesk, account=parts["account"]["id"]),
        lambda: read_incident(connection=outside.helpdesk, incident=parts["incident"]["id"]),
        lambda: read_sla(connection=outside.helpdesk, plan=parts["plan"]["id"]),
    ):
        with pytest.raises(Unreachable):
            read()
    assert read_ticket(connection=outside.helpdesk, ticket=parts["ticket"]["id"]).version == "1"


def test_the_registry_names_what_it_holds(outside: Outside) -> None:
    for name, connector in TOOLS.items():
        assert connector.contract.name == name
        assert contract(name) is connector.contract
        assert tool(name).contract is connector.contract
    with pytest.raises(UnknownTool, match=r"billing\.create_credit"):
        tool("billing.pay_out")


def test_business_keys_fit_their_column() -> None:
    longest = {
        "account": "A" * 100,
        "ticket": "T" * 100,
        "incident": "I" * 100,
        "ticket_version": "9" * 18,
        "subject": "S" * 150,
        "credit_note_id": "C" * 100,
    }
    for name in TOOLS:
        assert len(contract(name).business_key(longest)) <= 300
