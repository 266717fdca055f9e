"""Nobody could answer: from the start, which ends at a person who reads who is missing; or later, which is said, and
escalated at once where the rule escalates. And whoever was added by name stays asked, whatever the policy allows."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from agentops import amounts, engine
from agentops.starting import start_workflow
from approvals import seating
from approvals.models import ApprovalRequest, Decision
from approvals.services import handing, policies, staffing
from runs.models import Run
from runs.services import principals
from tests import published
from tests.approvals.world import voters
from tests.engine.conftest import World
from tests.engine.test_handed_back import act, asked, states


def gone(*names: str, active: bool = False) -> None:
    User.objects.filter(username__in=names).update(is_active=active)


MISSING = "too few people could decide: there is nobody; it takes one of support managers, with the right to vote"


@pytest.mark.parametrize("why", ["nobody is in the group", "only who started it", "all have a part or left"])
def test_what_nobody_could_answer_is_not_asked(world: World, why: str) -> None:
    starter = world.people["maya"]
    if why == "nobody is in the group":
        gone("maya", "jonas")
        starter = world.people["priya"]
    elif why == "only who started it":
        world.people["jonas"].groups.clear()
    else:
        gone("jonas")
    run = start_workflow(
        name="service_credit", data={"ticket": world.named("CS-8812")}, initiator=principals.of_user(user=starter)
    ).run
    run = world.work(run)
    assert (run.state, run.person_code) == ("needs_person", "nobody_to_ask")
    assert run.person_reason.startswith(MISSING)
    assert not ApprovalRequest.objects.exists()


def looked(run: Run) -> Run:
    """After the relay has looked for what nobody can answer, and a worker at what it found."""
    staffing.work_off()
    engine.advance(run_id=run.pk)
    run.refresh_from_db()
    return run


def test_what_nobody_can_answer_any_more_says_so_until_somebody_comes(world: World) -> None:
    run = asked(world)
    assert run.waits_for == "support managers to decide"
    gone("maya", "jonas")
    run = looked(run)
    assert run.state == "awaiting_approval" and run.wake_at == world.request(run).respond_by
    assert run.waits_for.startswith("somebody who may answer: there is nobody; it takes one of support managers")
    gone("jonas", active=True)
    assert looked(run).waits_for == "support managers to decide"
    assert world.vote(run, "jonas").code == "approved"


def asking(**more: Any) -> None:
    """The seeded policy, but that it asks otherwise."""
    version = policies.governing(tool="billing.create_credit")
    assert version is not None
    rules = [{**one, "ask": {**one["ask"], **more}} if one.get("ask") else one for one in version.rules["rules"]]
    document = {key: value for key, value in version.rules.items() if key != "policy"} | {"rules": rules}
    published.publish(
        slug="service-credits", name="Service credits", tools=["billing.create_credit"], document=document, note="n"
    )


def escalating(world: World) -> None:
    """Its questions go on to finance after an hour."""
    world.people["priya"].groups.add(voters("finance"))
    asking(escalate=[{"after_minutes": 60, "group": "finance"}])


def test_what_too_few_can_answer_says_how_many_there_are_until_somebody_comes(world: World) -> None:
    asking(quorum=2)
    run = asked(world)
    assert run.waits_for == "2 of the support managers to decide"
    gone("maya")
    assert looked(run).waits_for == (
        "somebody who may answer: there is 1 of the 2 needed; it takes 2 of support managers, with the right to vote"
        " and no part in this run"
    )
    assert world.vote(run, "jonas").code == "voted"
    assert looked(run).waits_for.startswith("somebody who may answer: there is nobody; it takes 2 of support managers")
    world.people["priya"].groups.add(voters("manager"))
    assert looked(run).waits_for == "2 of the support managers to decide"
    assert world.vote(run, "priya").code == "approved"


def test_what_too_few_can_answer_is_escalated_at_once(world: World) -> None:
    world.people["priya"].groups.add(voters("finance"))
    asking(quorum=2, escalate=[{"after_minutes": 60, "group": "finance"}])
    run = asked(world)
    gone("maya")
    run = looked(run)
    [stage] = seating.stages_of(request=world.request(run))
    assert stage.also == ["finance"] and run.waits_for == "2 of the support managers to decide"
    assert [world.vote(run, name).code for name in ("jonas", "priya")] == ["voted", "approved"]


def test_what_nobody_can_answer_any_more_is_escalated_at_once(world: World) -> None:
    escalating(world)
    run = asked(world)
    gone("maya", "jonas")
    run = looked(run)
    [stage] = seating.stages_of(request=world.request(run))
    assert stage.also == ["finance"] and run.waits_for == "support managers to decide"
    assert world.vote(run, "priya").code == "approved"
    assert world.work(run).state == "completed"


def test_what_only_an_escalation_could_have_answered_is_asked_and_escalated(world: World) -> None:
    escalating(world)
    gone("maya", "jonas")
    run = world.work(world.start())
    assert run.state == "awaiting_approval"
    looked(run)
    assert world.vote(run, "priya").code == "approved"


def test_whoever_was_added_is_asked_although_the_policy_allows_the_new_amount(world: World) -> None:
    run = asked(world)
    added = User.objects.create(username="added", first_name="Ada", password="!")
    added.groups.add(voters("experts"))
    first = world.request(run)
    assert handing.add_approver(
        request_id=first.pk, person=added, reason="knows the account", by=world.people["jonas"]
    ).ok
    assert act(world, run, amounts.propose, amount="900").ok
    run = world.work(run)
    assert (run.state, states(run)) == ("awaiting_approval", ["superseded", "open"])
    request = world.request(run)
    assert [stage.name for stage in seating.stages_of(request=request)] == ["Ada"]
    assert (request.quorum, request.respond_by > request.created_at) == (1, True)
    assert run.waits_for == "Ada to decide"
    assert world.vote(run, "jonas").code == "no_right"
    world.people["added"] = added
    assert world.vote(run, "added").code == "approved"
    assert world.work(run).state == "completed"
    decision = Decision.objects.get(proposal__step="credit")
    assert decision.kind == Decision.Kind.PEOPLE and [one["amount_minor"] for one in world.credits()] == [90_000]
