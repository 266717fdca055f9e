"""A yes whose person has lost the right counts nowhere, and the page says which and why."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agentops.api import stages as told
from agentops.pages import whereabouts
from approvals import heard, queries, seating
from approvals.models import ApprovalRequest, Remit, Stage, Vote
from approvals.words import sentence
from runs import clock
from runs.models import Run
from runs.services import principals
from tests.pages import world
from tests.statements_sent import statements_sent

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


@pytest.fixture
def finance(maya: User) -> Group:
    made, _ = Group.objects.get_or_create(name="finance")
    made.permissions.set(Group.objects.get(name="manager").permissions.all())
    return made


def of_finance(name: str, group: Group) -> User:
    person = world.person(name)
    person.groups.set([group])
    Remit.objects.create(user=person, team="emea", region="north", limits={"USD": 10**9})
    return person


@pytest.fixture
def noor(finance: Group) -> User:
    return of_finance("Noor Haddad", finance)


@pytest.fixture
def nils(finance: Group) -> User:
    return of_finance("Nils Berg", finance)


def ask(story: world.Story | None = None) -> ApprovalRequest:
    """Managers and, beside them, two of finance."""
    request = world.ask(story)
    Stage.objects.create(
        request=request, position=2, name="Finance", groups=["finance"], quorum=2, opened_at=request.created_at,
        conditions={"within_limit": True, "team": "emea", "region": "north"},
    )  # fmt: skip
    return request


def say_yes(request: ApprovalRequest, who: User, *, instead_of: User | None = None) -> None:
    away = None if instead_of is None else principals.of_user(user=instead_of)
    Vote.objects.create(
        request=request, stage=request.stages.get(name="Finance"), principal=principals.of_user(user=who),
        instead_of=away, choice="approve", page_digest=request.page_digest, binding_digest=request.binding_digest,
        authenticated_by="password", group="finance", channel="page", at=clock.now(),
    )  # fmt: skip


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def shown(request: ApprovalRequest, reader: User) -> str:
    return " ".join(signed_in(reader).get(f"/approvals/{request.pk}/").text.split())


def set_about(noor: User, **fields: Any) -> None:
    Remit.objects.filter(user=noor).update(**fields)


AWAY: dict[str, tuple[Callable[[User], Any], str]] = {
    "account": (
        lambda noor: User.objects.filter(pk=noor.pk).update(is_active=False),
        "the account of Noor Haddad is no longer active",
    ),
    "right": (
        lambda noor: noor.groups.set([Group.objects.create(name="others")]),
        "Noor Haddad no longer has the right to vote",
    ),
    "group": (
        lambda noor: noor.groups.set([Group.objects.get(name="manager")]),
        "Noor Haddad is no longer in finance",
    ),
    "team": (lambda noor: set_about(noor, team="apac"), "Noor Haddad is no longer of the team emea"),
    "region": (lambda noor: set_about(noor, region=""), "Noor Haddad is no longer for the region north"),
    "limit": (
        lambda noor: set_about(noor, limits={"EUR": 10**9}),
        "the limit of Noor Haddad no longer covers the amount",
    ),
}


@pytest.mark.parametrize("what", list(AWAY))
def test_what_counts_no_more_is_said_with_why_and_counted_nowhere(
    maya: User, noor: User, nils: User, what: str
) -> None:
    request = ask()
    for who in (noor, nils):
        say_yes(request, who)
    assert "2 of 2 have approved" not in shown(request, maya) and "no longer counts" not in shown(request, maya)
    assert "has its approvals again; they are counted within half a minute" in shown(request, maya)
    assert "Nobody who may answer" not in shown(request, maya)
    take, why = AWAY[what]
    take(noor)
    page = shown(request, maya)
    assert f"– no longer counts: {why}; it counts again once that is put right" in page
    assert page.count("no longer counts") == 1 and "asked now, 1 of 2 have approved" in page
    assert "support managers and Finance (1 of 2)" in page
    assert "Finance (1 of 2)" in signed_in(maya).get("/approvals/").text
    priya = signed_in(world.person("Priya Raman", "support"))
    assert "Finance (1 of 2)" in priya.get(f"/runs/{request.run_id}/").text
    found = told.newest(run=request.run)
    assert found is not None and [(one.approved, one.needed) for one in found.stages] == [(0, 1), (1, 2)]


def test_one_request_takes_the_same_number_of_questions_however_many_have_answered(
    maya: User, noor: User, nils: User
) -> None:
    request = ask()

    def sent() -> int:
        with statements_sent() as found:
            told.newest(run=request.run)
            whereabouts.of(run=Run.objects.get(pk=request.run_id))
        return len(found)

    say_yes(request, noor)
    one = sent()
    say_yes(request, nils)
    assert sent() == one


def test_who_has_answered_is_told_how_many_count(noor: User, nils: User) -> None:
    request = ask()
    for who in (noor, nils):
        say_yes(request, who)
    noor.groups.clear()
    seen = seating.of(request=request, user=nils)
    found = queries.objections.voted(seating=seen)
    assert found is not None
    said = sentence(code=found.code, detail=found.detail)
    assert said == "You have already answered; 1 of 3 have approved."


def test_of_a_stand_in_it_says_whose_right_it_is_that_is_gone(maya: User, noor: User, nils: User) -> None:
    request = ask()
    say_yes(request, nils, instead_of=noor)
    assert "no longer counts" not in shown(request, maya)
    set_about(noor, team="")
    assert "no longer counts: Noor Haddad is no longer of the team emea" in shown(request, maya)
    User.objects.filter(pk=nils.pk).update(is_active=False)
    assert "no longer counts: the account of Nils Berg is no longer active" in shown(request, maya)


def test_what_has_ended_is_told_as_it_was(maya: User, noor: User, nils: User) -> None:
    request = ask()
    say_yes(request, noor)
    noor.groups.clear()
    world.close(request, "expire")
    assert "no longer counts" not in shown(request, maya)
    assert sum(heard.yes(requests=[ApprovalRequest.objects.get()]).values()) == 1


def test_lists_ask_the_same_number_of_questions_whoever_lost_what(maya: User, noor: User, nils: User) -> None:
    browser = signed_in(maya)

    def sent() -> int:
        with statements_sent() as found:
            assert "Finance (1 of 2)" in browser.get("/approvals/?tab=others").text
        return len(found)

    def more(number: int) -> None:
        for _ in range(number):
            request = ask(world.Story(customer=f"Customer {ApprovalRequest.objects.count()}"))
            say_yes(request, noor)
            say_yes(request, nils, instead_of=maya)
            set_about(noor, team="apac")

    maya.groups.add(Group.objects.get(name="finance"))
    Remit.objects.create(user=maya, team="emea", region="north", limits={"USD": 10**9})
    more(1)
    few = sent()
    more(5)
    assert sent() == few <= 36
