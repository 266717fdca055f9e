"""The inbox: exactly what waits for this person, soonest first, in a number of queries that does not grow."""

import uuid
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import transaction

from approvals import lists, queries
from approvals.models import ApprovalRequest
from approvals.models.request import RequestState
from approvals.services import requests
from runs.models import Run
from runs.services import principals
from tests.approvals import world
from tests.statements_sent import statements_sent

pytestmark = pytest.mark.usefixtures("db")


def ids(user: User, tab: Any, **kw: Any) -> list[uuid.UUID]:
    return [row.pk for row in lists.page(user=user, listing=lists.Listing(tab=tab), limit=50, **kw)]


def test_mine_are_those_i_may_vote_on_and_no_others(owner: psycopg.Connection) -> None:
    anna, bert, outsider = world.user("anna"), world.user("bert"), world.user("out", group="")
    me = principals.of_user(user=anna)
    version = world.policy()
    asked = [
        world.ask(version=version),
        world.ask(version=version, initiator=me),
        world.ask(version=version, proposer=me),
        world.ask(version=version, quorum=2),
        world.ask(version=version),
        world.ask(version=version),
        world.ask(version=version),
    ]
    world.cast(asked[3], anna)
    world.cast(asked[4], bert)
    owner.execute(
        "UPDATE approvals_approvalrequest SET respond_by = clock_timestamp() WHERE id = %s", [asked[5].request.pk]
    )
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=asked[6].run.pk)
        run.cancel_requested_at = run.state_since
        run.save(update_fields=["cancel_requested_at"])
    for person in (anna, bert, outsider):
        mine, others = ids(person, "mine"), ids(person, "others")
        everything = [one.fresh() for one in asked]
        assert {row.pk for row in everything if queries.may_vote(user=person, request=row) == ""} == set(mine)
        assert set(mine) | set(others) == {one.request.pk for one in asked[:4]}
        assert not set(mine) & set(others)
        assert queries.waiting_count(user=person) == len(mine)
    assert ids(anna, "mine") == [asked[0].request.pk]
    assert len(ids(bert, "mine")) == 4
    assert ids(outsider, "mine") == []
    codes = [queries.may_vote(user=anna, request=one.fresh()) for one in asked]
    assert codes == ["", "own_request", "own_request", "already_voted", "decided", "expired", "cancelled"]


def test_soonest_deadline_first_page_by_page(owner: psycopg.Connection) -> None:
    anna = world.user("anna")
    version = world.policy()
    asked = [world.ask(version=version).request.pk for _ in range(5)]
    order = [asked[2], asked[0], asked[4], asked[1], asked[3]]
    for minutes, pk in enumerate(order):
        owner.execute(
            "UPDATE approvals_approvalrequest SET respond_by = date_trunc('day', now()) + '1 day'::interval"
            " + make_interval(mins => %s) WHERE id = %s",
            [minutes // 2, pk],  # some share a deadline
        )
    whole = ids(anna, "mine")
    assert [pk for pk in whole if pk in order[:2]] == whole[:2]
    pages: list[uuid.UUID] = []
    for _ in range(3):
        last = pages[-1] if pages else None
        pages += [row.pk for row in lists.page(user=anna, listing=lists.Listing(), limit=2, after=last)]
    assert pages == whole
    assert set(pages) == set(order)
    assert lists.page(user=anna, listing=lists.Listing(), limit=2, after=pages[-1]) == []


def test_decided_holds_what_ended_but_not_what_was_only_asked_anew() -> None:
    anna = world.user("anna")
    version = world.policy()
    approved, rejected, moved = (world.ask(version=version) for _ in range(3))
    world.cast(approved, anna)
    world.cast(rejected, anna, "reject")
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().get(pk=moved.run.pk)
        requests.close_open(run=run, to=RequestState.SUPERSEDED, why="", actor=principals.system())
    assert ids(anna, "decided") == [rejected.request.pk, approved.request.pk]
    assert ids(anna, "decided", after=rejected.request.pk) == [approved.request.pk]
    assert ids(anna, "mine") == []


def touch(row: ApprovalRequest) -> None:
    """What a row of the page shows."""
    assert row.run.initiator.label
    assert row.run.agent.label
    assert row.proposal.proposer.label
    assert row.policy_version.policy.name
    assert all(vote.principal.label for vote in row.votes.all())
    assert getattr(row, "decision", None) is None or row.decision.kind


@pytest.mark.parametrize("tab", ["mine", "others", "decided"])
def test_the_number_of_queries_does_not_grow(tab: Any) -> None:
    anna, bert = world.user("anna"), world.user("bert")
    version = world.policy(quorum=2)
    counts = []
    for round_ in range(2):
        for _ in range(1 + round_ * 4):
            asked = world.ask(version=version, quorum=2)
            if tab == "decided":
                world.cast(asked, anna, "reject")
            elif tab == "others":
                world.cast(asked, anna)
            else:
                world.cast(asked, bert)
        with statements_sent() as sent:
            rows = lists.page(user=anna, listing=lists.Listing(tab=tab), limit=50)
            for row in rows:
                touch(row)
        assert len(rows) == 1 + round_ * 5
        counts.append(len(sent))
    assert counts[0] == counts[1] <= 9
