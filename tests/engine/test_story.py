"""The main job, with the sandbox's ledger as the judge."""

from approvals.models import Decision
from reconciliation.models import Attempt, Observation, Operation
from runs import record
from runs.models import Event, Proposal
from tests.engine.conftest import World


def test_a_credit_from_ticket_to_confirmed_with_the_answer_lost(world: World) -> None:
    world.sandbox.faults({"mode": "execute_and_timeout", "operation": "billing.credit_notes.create", "times": 1})
    run = world.work(world.start())
    assert run.state == "awaiting_approval", run.person_reason
    proposal = Proposal.objects.get(run=run)
    assert (proposal.amount_minor, proposal.currency) == (120_000, "USD")
    assert not world.credits()

    assert world.vote(run).code == "approved"
    run = world.work(run, until=lambda one: one.is_over)
    operation = Operation.objects.get(proposal=proposal)
    states = Event.objects.filter(stream=f"run:{run.pk}", kind="run.state").values_list("data__target", flat=True)
    assert "outcome_unknown" in states

    assert run.state == "completed", run.outcome
    made = world.credits()
    assert [(row["amount_minor"], row["currency"].upper(), row["identity"]) for row in made] == [
        (120_000, "USD", proposal.identity)
    ]
    operation.refresh_from_db()
    assert (operation.state, operation.settled_by) == ("succeeded", "probe")
    assert operation.external_reference in run.outcome
    assert Attempt.objects.filter(operation=operation).count() == 1
    assert Observation.objects.filter(operation=operation, source="probe", finding="found").count() == 1
    tools = [one.tool for one in Operation.objects.filter(run=run).order_by("created_at")]
    assert tools == ["billing.create_credit", "helpdesk.update_ticket", "helpdesk.draft_reply"]
    assert record.verify(stream=f"run:{run.pk}") is None


def test_a_small_credit_is_automatic(world: World) -> None:
    run = world.work(world.start("CS-8815"))
    assert run.state == "completed", run.person_reason
    assert Decision.objects.filter(proposal__run=run, kind="policy").count() == 3
    assert len(world.credits()) == 1
    assert world.credits()[0]["amount_minor"] == 42_000


def test_rejected_means_nothing_is_sent(world: World) -> None:
    run = world.work(world.start())
    assert world.vote(run, choice="reject").code == "rejected"
    run = world.work(run)
    assert run.state == "rejected"
    assert not world.credits()
    assert not Operation.objects.filter(run=run).exists()
