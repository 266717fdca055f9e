"""What a contract declares is tried out: the demo's connectors keep it, and one that lies is found out."""

import datetime as dt
import io
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agentops.demo.grounds import grounds
from agentops.demo.sandbox_client import SandboxClient
from runs.money import Strict
from runs.tools.base import Ambiguous, Contract, Lookup, Overloaded, Rate, Record, Refused, Repeat, Unreachable
from runs.tools.conformance import Ground, Said, examine
from runs.tools.registry import TOOLS
from tests.outside import Outside


@pytest.mark.parametrize("tool", ["billing.create_credit", "helpdesk.draft_reply", "helpdesk.update_ticket"])
def test_the_demos_connectors_do_what_they_declare(outside: Outside, tool: str) -> None:
    found = examine(ground=grounds(sandbox=SandboxClient(url=outside.process.url))[tool])
    assert [(one.name, one.detail) for one in found if one.said == Said.BROKEN] == []
    tried = {one.name for one in found if one.said == Said.KEPT}
    assert tried >= {"one effect", "repeatable", "parameters", "retention", "lookup shows", "silence", "call limit"}
    assert ("precondition" in tried) == (tool == "helpdesk.update_ticket")
    assert ("touches" in tried) == (tool == "billing.create_credit")


def test_the_command_says_what_it_found_and_acts_where_nothing_is_real(outside: Outside, settings: Any) -> None:
    settings.SANDBOX_URL = outside.process.url
    out = io.StringIO()
    call_command("check_connectors", "helpdesk.update_ticket", stdout=out)
    assert "kept       Refused when ticket_version has moved on" in out.getvalue()
    assert "kept       A key is kept for 1 d: still known after 23 h 50 min" in out.getvalue()
    settings.SANDBOX_URL = ""
    settings.CONNECTOR_GROUNDS = {"helpdesk.update_ticket": f"{__name__}.a_liar"}
    before = len(outside.process.ledger())
    out = io.StringIO()
    call_command("check_connectors", stdout=out)
    assert out.getvalue().count("not tried") == len(TOOLS) and len(outside.process.ledger()) == before
    with pytest.raises(CommandError, match="1 declared thing is not as declared"):
        call_command("check_connectors", "helpdesk.update_ticket", carry_out=True, stdout=io.StringIO())
    with pytest.raises(CommandError, match="there is no tool"):
        call_command("check_connectors", "helpdesk.nothing")


# ---- a receiver in this process, and every lie about it


class Noted(Strict):
    item: str
    version: str
    text: str


HONEST = Contract(
    name="desk.note",
    version="1",
    system="desk",
    title="Note",
    effect=Noted,
    repeat=Repeat.BY_IDENTITY,
    retention=dt.timedelta(hours=1),
    settling=dt.timedelta(seconds=0.1),
    call_limit=dt.timedelta(seconds=0.1),
    lookup_is_conclusive=True,
    precondition="The desk compares the version.",
    precondition_field="version",
    undo="No",
    touches="One item",
    business_key=lambda effect: f"note/{effect['item']}",
    rate=Rate(calls=20, per=dt.timedelta(seconds=0.1)),
    resources=lambda effect: (f"item {effect['item']}",),
)
_items = itertools.count(1)


@dataclass
class Receiver:
    """Keeps what its lies let it keep; its connector answers from it."""

    lies: frozenset[str] = frozenset()
    contract: Contract = HONEST
    now: float = 0.0
    notes: list[tuple[str, Record]] = field(default_factory=list)
    keys: dict[str, tuple[float, dict[str, str], Record]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    answers: bool = True
    reachable: bool = True
    calls: int = 0

    def send(self, *, effect: dict[str, str], identity: str, wire_key: str) -> Record:
        self.calls += 1
        if not self.answers:
            time.sleep(1.3 if "call limit" in self.lies else 0.02)
            raise Ambiguous("no answer")
        if "rate" in self.lies and self.calls % 3 == 0:
            raise Overloaded("too many")
        known = self.keys.get(wire_key)
        kept = 60.0 if "retention" in self.lies else 3600.0
        if known is not None and self.now - known[0] < kept and "repeatable" not in self.lies:
            if known[1] != effect and "parameters" not in self.lies:
                raise Ambiguous("used with other parameters")
            return known[2]
        if self.versions.get(effect["item"], "1") != effect["version"] and "precondition" not in self.lies:
            raise Refused("the version has moved on", code="stale")
        reference = f"N-{len(self.notes) + 1}"
        made = Record(reference=reference, identity=identity, at=dt.datetime.now(dt.UTC))
        if "as sent" in self.lies:
            made = replace(made, mismatch={"text": (effect["text"], "")})
        self.notes.append((effect["item"], made))
        if "one effect" in self.lies:
            self.notes.append((effect["item"], replace(made, reference=f"{reference}b")))
        if "touches" in self.lies:
            self.notes.append(("another", replace(made, reference=f"{reference}c", identity=f"beside {identity}")))
        self.keys[wire_key] = (self.now, dict(effect), made)
        return made

    def look_up(self, *, effect: dict[str, str], identity: str) -> Lookup:
        if not self.reachable and "silence" not in self.lies:
            raise Unreachable("away")
        if not self.reachable or "lookup shows" in self.lies:
            return Lookup(records=(), pages=1)
        mine = [one for item, one in self.notes if one.identity == identity]
        if "lookup is exact" in self.lies:
            mine = [one for item, one in self.notes if item == effect["item"]]
        return Lookup(records=tuple(mine), pages=1)


def ground(receiver: Receiver) -> Ground:
    def effect() -> dict[str, str]:
        return {"item": str(next(_items)), "version": "1", "text": "one"}

    def silent() -> Receiver:
        return replace(receiver, answers=False)

    def touched(identity: str) -> set[str]:
        return {f"item {item}" for item, one in receiver.notes if identity in one.identity}

    return Ground(
        tool=receiver,  # type: ignore[arg-type]  # its contract is its own
        effect=effect,
        vary=lambda given: {**given, "text": "two"},
        same_purpose=lambda given: {**given, "text": "two"},
        make_stale=lambda given: receiver.versions.update({given["item"]: "2"}),
        age=lambda by: setattr(receiver, "now", receiver.now + by.total_seconds()),
        effects=lambda identity: sum(one.identity == identity for _, one in receiver.notes),
        touched=touched,
        silent=silent,  # type: ignore[arg-type]
        down=replace(receiver, reachable=False),  # type: ignore[arg-type]
    )


def broken(receiver: Receiver) -> set[str]:
    return {one.name for one in examine(ground=ground(receiver)) if one.said == Said.BROKEN}


def a_liar() -> Ground:
    return ground(Receiver(lies=frozenset({"parameters"})))


def test_an_honest_receiver_keeps_it_all() -> None:
    found = examine(ground=ground(Receiver()))
    assert {one.said for one in found} == {Said.KEPT} and len(found) == 12, found


LIES = ("parameters", "retention", "lookup is exact", "silence", "precondition", "call limit", "touches")


@pytest.mark.parametrize("lie", LIES)
def test_a_receiver_that_does_not_do_one_thing_fails_in_that(lie: str) -> None:
    assert broken(Receiver(lies=frozenset({lie}))) == {lie}


MORE = [("one effect", "one effect"), ("as sent", "one effect"), ("rate", "rate"), ("repeatable", "repeatable")]


@pytest.mark.parametrize(("lie", "found"), MORE)
def test_a_receiver_that_does_more_or_takes_less_is_found_out(lie: str, found: str) -> None:
    assert found in broken(Receiver(lies=frozenset({lie})))


def test_a_lookup_that_does_not_show_what_was_made_is_found_out() -> None:
    assert "lookup shows" in broken(Receiver(lies=frozenset({"lookup shows"})))


DECLARED: list[tuple[str, Callable[[Contract], Contract]]] = [
    ("business key", lambda one: replace(one, business_key=lambda effect: f"{effect['item']}/{effect['text']}")),
    ("business key", lambda one: replace(one, business_key=lambda effect: "the same for all")),
    ("business key", lambda one: replace(one, business_key=lambda effect: "")),
    ("touches", lambda one: replace(one, resources=lambda effect: ("",))),
    ("retention", lambda one: replace(one, retention=dt.timedelta(minutes=10))),
    ("not repeatable", lambda one: replace(one, repeat=Repeat.ONCE)),
    ("not repeatable", lambda one: replace(one, repeat=Repeat.LOOK_UP_FIRST)),
]


@pytest.mark.parametrize(("name", "change"), DECLARED)
def test_a_declaration_that_cannot_be_true_is_found_out(name: str, change: Callable[[Contract], Contract]) -> None:
    assert broken(Receiver(contract=change(HONEST))) == {name}


def test_what_a_ground_cannot_show_is_not_called_kept() -> None:
    bare = replace(ground(Receiver()), age=None, make_stale=None, silent=None, down=None, touched=None)
    said = {one.name: one.said for one in examine(ground=bare)}
    names = {"retention", "precondition", "call limit", "silence", "touches"}
    assert {name for name, one in said.items() if one == Said.NOT_TRIED} == names
