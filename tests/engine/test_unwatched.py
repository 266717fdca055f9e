"""Guards that no test watched: each was taken out, and nothing noticed."""

from agentops.demo.world import STORIES
from reconciliation.models import Operation
from runs.tools.billing.client import client
from runs.tools.registry import connection
from tests.engine.conftest import World
from tests.engine.test_together import approved_runs, limit_the_month


def test_a_credit_given_by_hand_meanwhile_on_a_paid_invoice_is_seen_just_before_sending(world: World) -> None:
    """On a paid invoice nothing that the approval is bound to changes: only the workflow's own objection knows."""
    story = next(one for one in STORIES if one.ticket == "CS-8812")
    world.sandbox.pay(world.named(story.invoice))
    run = world.approved()
    effect = world.request(run).proposal.effect
    assert effect["balance_minor"] == effect["amount_minor"] == "120000"
    with client(connection("billing")) as billing:
        billing.v1.credit_notes.create(
            {
                "invoice": effect["invoice_id"],
                "amount": 120_000,
                "credit_amount": 120_000,
                "metadata": {"incident": effect["incident"]},
            }
        )
    run = world.work(run)
    assert world.credits() == [] and not Operation.objects.filter(run=run).exists()
    assert run.state == "needs_person", run.outcome


def test_a_limit_lowered_below_what_is_used_holds_at_once(world: World) -> None:
    limit_the_month(500_000)
    runs = approved_runs(world, 3)
    for run in runs[:2]:
        assert world.work(run).state == "completed"
    limit_the_month(130_000)
    last = world.work(runs[2])
    print(last.state, last.person_code, last.person_reason, last.outcome)
    assert sum(one["amount_minor"] for one in world.credits()) == 240_000
    assert last.state == "needs_person"
