"""Every way in which somebody's word reaches a request, against everything that keeps it from counting: decided by
somebody else, too late, their own affair, a right lost on the way, facts that moved, hostile words."""

import ast
import datetime as dt
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User

from agentops import bulk_votes
from approvals.models import Absence, ApprovalRequest, BulkItem, Decision, Refusal, Vote
from approvals.services import absences, votes
from runs import clock
from runs.ids import new_id
from runs.models import Evidence, Proposal
from runs.services import principals
from tests.approvals.world import voters
from tests.pages import world
from tests.pages.test_bulk import start
from tests.pages.test_decision import click, signed_in

pytestmark = pytest.mark.usefixtures("db")
REPO = Path(__file__).parents[2]
Go = Callable[..., str]  # gives the word that was begun, and says what it was told


def test_a_word_reaches_a_request_in_these_ways_alone() -> None:
    """The API and the admin site have none: see tests/api/test_access.py and tests/operating/test_admin_site.py."""
    found = set()
    for path in (REPO / "agentops").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = {f"{node.module}.{one.name}" for one in node.names} | {node.module}
                if "approvals.services.votes" in names:
                    found.add(path.relative_to(REPO / "agentops").as_posix())
    ways = {"bulk_votes.py", "pages/bulk.py", "pages/decision.py"}
    for_show = {"bench/measure.py", "chaos/load.py", "demo/story.py"}  # of people who are made up
    assert found == ways | for_show


_numbers = itertools.count(1)


def person(path: str) -> tuple[User, User]:
    """Who gives the word, and whose right it is; new ones each time."""
    number = next(_numbers)
    maya = world.person(f"Maya{number} Lindgren", "manager")
    if path != "stand-in":
        return maya, maya
    dora = world.person(f"Dora{number} Hall", "support")
    dora.groups.add(voters("others"))
    now = clock.read()
    made = absences.arrange(
        person_id=maya.pk, stand_in_id=dora.pk, begins=now - dt.timedelta(hours=1), ends=now + dt.timedelta(days=1),
        note="away", by=maya,
    )  # fmt: skip
    assert made.code == "ok", made
    return dora, maya


def begun(path: str, ask: ApprovalRequest, who: User, choice: str, comment: str) -> Go:
    """What is done before anything changes: the page is opened, or the word on several is written down."""

    def told() -> str:
        last = Refusal.objects.filter(request=ask).order_by("at", "id").last()
        return last.code if last is not None else str(ApprovalRequest.objects.get(pk=ask.pk).state)

    if path == "bulk":
        assert start([ask], who, choice, comment=comment).code == "ok"

        def carry_out() -> str:
            while bulk_votes.work_off():
                pass
            assert BulkItem.objects.get(request=ask).code == told()
            return told()

        return carry_out
    if path == "service":
        given: dict[str, Any] = {"request_id": ask.pk, "user": who, "page_digest": ask.page_digest}
        given |= {"choice": choice, "comment": comment, "acknowledged": False, "authenticated_by": "a key"}
        return lambda: votes.cast(**given, channel="command").code
    browser = signed_in(who)
    assert browser.get(f"/approvals/{ask.pk}/").status_code == 200

    def post() -> str:
        answer = click(browser, ask, who, "approve_confirmed" if choice == "approve" else "reject", comment=comment)
        assert answer.status_code in (302, 403, 409), answer.status_code
        return told()

    return post


def decided(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    jonas = world.person(f"Jonas{next(_numbers)} Weber", "manager")
    given: dict[str, Any] = {"request_id": ask.pk, "user": jonas, "page_digest": ask.page_digest, "comment": "not ours"}
    assert votes.cast(
        **given, choice="reject", acknowledged=False, authenticated_by="password", channel="page"
    ).accepted


def late(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    owner.execute(
        "UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() - interval '1 second' WHERE id = %s",
        [ask.pk],
    )


def own(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    """They have edited the proposal."""
    latest = Proposal.objects.get(pk=ask.proposal_id)
    latest.pk, latest.number, latest.identity = new_id(), 2, f"{latest.identity}x"
    latest.proposer, latest.model_call = principals.of_user(user=who), None
    latest.save(force_insert=True)


def without_group(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    who.groups.clear()


def deactivated(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    User.objects.filter(pk=who.pk).update(is_active=False)


def absence_over(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    assert absences.end(absence_id=Absence.objects.get(person=who).pk, by=who).code == "ok"


def moved(ask: ApprovalRequest, who: User, owner: psycopg.Connection) -> None:
    for piece in Evidence.objects.filter(run=ask.run):
        piece.pk, piece.reading = new_id(), 2
        if piece.kind == "invoice":
            piece.version, piece.bound_digest = "4", "4" * 64
        piece.save(force_insert=True)


PATHS = ("page", "bulk", "service", "stand-in")
CASES: dict[str, tuple[Callable[[ApprovalRequest, User, psycopg.Connection], None], str]] = {
    "decided by somebody else": (decided, "decided"),
    "one second too late": (late, "expired"),
    "of their own": (own, "own_request"),
    "out of the group": (without_group, "no_right"),
    "deactivated": (deactivated, "inactive"),
    "the facts moved": (moved, "out_of_date"),
}


@pytest.mark.parametrize("path", PATHS)
def test_what_does_not_count_counts_on_no_path(path: str, owner: psycopg.Connection) -> None:
    for case, choice in itertools.product(CASES, ("approve", "reject")):
        who, whose = person(path)
        ask = world.ask()
        go = begun(path, ask, who, choice, "because" if choice == "reject" else "")
        change, code = CASES[case]
        # a stand-in has no other right than that of whom they stand in for
        change(ask, whose if case == "out of the group" else who, owner)
        assert go() == code, (case, choice)
        by = principals.of_user(user=who)
        refusal = Refusal.objects.get(principal=by)
        assert (refusal.code, refusal.request_id) == (code, ask.pk)
        assert not Vote.objects.filter(principal=by).exists()
        assert Decision.objects.filter(request=ask).count() == (1 if code == "decided" else 0)
        state = {"decided": "rejected", "expired": "expired"}.get(code, "open")
        assert ApprovalRequest.objects.get(pk=ask.pk).state == state, (case, choice)


def test_a_stand_in_whose_right_ends_on_the_way(owner: psycopg.Connection) -> None:
    """The absence is over; whoever is away is deactivated, or has a part in the run."""
    for path, end in itertools.product(("page", "bulk"), (absence_over, deactivated, own)):
        dora, maya = person("stand-in")
        ask = world.ask()
        go = begun(path, ask, dora, "approve", "")
        end(ask, maya, owner)
        assert go() == "no_right", (path, end)
        assert Refusal.objects.get(request=ask).code == "no_right"
        assert not Vote.objects.filter(request=ask).exists()


HOSTILE = "</td><script>alert(1)</script>\nAmount: 1.00\n" + "x" * 3000


def test_hostile_words_are_kept_whole_and_change_no_amount() -> None:
    for path, choice in itertools.product(PATHS, ("approve", "reject")):
        who, _ = person(path)
        ask = world.ask(world.Story(customer="</td><script>1", memo=HOSTILE[:900], invoice="INV-1\nAmount: 1.00"))
        assert begun(path, ask, who, choice, HOSTILE)() == ("approved" if choice == "approve" else "rejected")
        assert Vote.objects.get(request=ask).comment.split() == HOSTILE.split()
        page = signed_in(who).get(f"/approvals/{ask.pk}/").text
        assert "<script>alert" not in page and "$1,200.00" in page
