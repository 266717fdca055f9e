"""Rights are those of the moment of the click: lost groups, lost rights, closed accounts; and who waits for whom."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connections, transaction

from approvals import locks, queries
from approvals.models import Decision, Refusal, Vote
from approvals.models.request import RequestState
from approvals.words import sentence
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")


def vote_right() -> Permission:
    return Permission.objects.get(codename="vote", content_type__app_label="approvals")


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


LOSSES: dict[str, tuple[Callable[[User], Any], str]] = {
    "removed from the group": (lambda user: user.groups.clear(), "no_right"),
    "the group is deleted": (lambda user: Group.objects.get(name="manager").delete(), "no_right"),
    "the group is renamed": (lambda user: Group.objects.filter(name="manager").update(name="former"), "no_right"),
    "the group loses the right": (
        lambda user: Group.objects.get(name="manager").permissions.remove(vote_right()),
        "no_right",
    ),
    "deactivated": (deactivate, "inactive"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_page_that_was_opened_with_the_right_is_clicked_without_it(loss: str) -> None:
    anna = world.user("anna")
    asked = world.ask()
    loaded = User.objects.get(pk=anna.pk)
    assert loaded.has_perm("approvals.vote")  # and so the object that the page holds has it cached
    assert queries.may_vote(user=loaded, request=asked.request) == ""
    lose, code = LOSSES[loss]
    lose(anna)
    assert queries.may_vote(user=loaded, request=asked.fresh()) == code
    result = world.cast(asked, loaded)
    assert result.code == code
    assert Refusal.objects.get().code == code
    assert (Vote.objects.count(), Decision.objects.count(), asked.fresh().state) == (0, 0, RequestState.OPEN)
    assert asked.events("request.refused") == ["request.refused"]
    assert len(sentence(code=code, detail=result.detail)) > 20


def test_others_and_even_a_superuser_need_the_membership() -> None:
    world.user("anna")
    asked = world.ask()
    other = world.user("odd", group="finance")
    outsider = world.user("out", group="")
    root = world.user("root", group="", is_superuser=True)
    for person in (other, outsider, root):
        assert world.cast(asked, person).code == "no_right"
    root.groups.add(world.voters("manager"))
    assert world.cast(asked, root).code == "approved"


def test_a_member_without_the_right_to_vote_does_not_count() -> None:
    anna = world.user("anna")
    asked = world.ask()
    world.voters("manager").permissions.clear()
    assert world.cast(asked, anna).code == "no_right"
    anna.user_permissions.add(vote_right())
    assert world.cast(asked, anna).code == "approved"


CHANGES: dict[str, Callable[[User], Any]] = {
    **{name: lose for name, (lose, _code) in LOSSES.items()},
    "gains a right of their own": lambda user: user.user_permissions.add(vote_right()),
    "joins another group": lambda user: user.groups.add(Group.objects.create(name="another")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_changes_rights_waits_for_a_vote_that_is_using_them(change: str) -> None:
    anna = world.user("anna")
    changed = threading.Event()

    def work() -> None:
        CHANGES[change](User.objects.get(pk=anna.pk))
        changed.set()
        connections.close_all()

    other = threading.Thread(target=work)
    with transaction.atomic():
        locks.share_users(user_ids=[anna.pk], groups=["manager"])
        other.start()
        assert world.somebody_waits()
        assert not changed.is_set()
    other.join(timeout=120)
    assert changed.is_set()


def test_nobody_waits_for_the_rights_of_another_person() -> None:
    anna, bert = world.user("anna"), world.user("bert")
    with transaction.atomic():
        locks.share_users(user_ids=[anna.pk], groups=["manager"])
        (done,) = world.at_once(lambda: bert.groups.clear())
        assert done is None
        assert not world.somebody_waits(seconds=0)
    assert not bert.groups.exists()


def test_a_vote_waits_for_a_removal_under_way_and_then_sees_it(owner: psycopg.Connection) -> None:
    anna = world.user("anna")
    asked = world.ask()
    results: list[Any] = []

    def work() -> None:
        results.append(world.cast(asked, anna))
        connections.close_all()

    other = threading.Thread(target=work)
    with owner.transaction():
        owner.execute("DELETE FROM auth_user_groups WHERE user_id = %s", [anna.pk])
        other.start()
        assert world.somebody_waits()
        assert results == []
    other.join(timeout=120)
    assert [result.code for result in results] == ["no_right"]
    assert Decision.objects.count() == 0


def test_votes_and_removals_at_once_end_one_way_or_the_other() -> None:
    """Whichever came first: no exception, no deadlock, and never a yes by somebody who had lost the right before."""
    version = world.policy() if world.user("keeper") else None
    for number in range(20):
        person = world.user(f"p{number}")
        asked = world.ask(version=version)
        vote, _ = world.at_once(
            lambda asked=asked, person=person: world.cast(asked, person),
            lambda person=person: User.objects.get(pk=person.pk).groups.clear(),
        )
        assert vote.code in ("approved", "no_right"), vote
        assert (Decision.objects.filter(proposal=asked.proposal).count() == 1) is (vote.code == "approved")
