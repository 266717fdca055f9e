"""A reversal is proposed by the API and the command line with the refusals of the page, and told of from both sides."""

from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command

from reconciliation.models import Operation, Reversal
from runs.models import Principal, Run
from runs.services import tokens
from tests.api.test_operating import Operator
from tests.undoing.conftest import Undoing
from tests.undoing.test_pages import client

WHY = "the outage was another one"


def command(*arguments: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("propose_reversal", *arguments, stdout=out)
    except CommandError as problem:
        return str(problem), 2
    except SystemExit as ended:
        return out.getvalue(), int(ended.code or 0)
    return out.getvalue(), 0


def told_of(undo: Undoing, credit: Operation, run: Run) -> None:
    """Both operations, on their pages and by the API."""
    desk, priya = Operator(tokens.issue(name="helpdesk", label="Help desk")), client(undo, "priya")
    made = Operation.objects.get(run=run)
    first: dict[str, Any] = desk.get(f"operations/{credit.pk}").json()
    [undone] = first["undone"]
    assert (undone["run"], undone["operation"], undone["outcome"]) == (str(run.pk), str(made.pk), "succeeded")
    assert (undone["result"], undone["by"], undone["reason"]) == ("done", str(run.initiator), WHY)
    assert [(one["choice"], one["by"]) for one in undone["votes"]] == [("approve", "Maya Lindgren")]
    assert first["undoes"] is None and first["outcome"] == "compensated"
    page = priya.get(f"/operations/{credit.pk}/").content.decode()
    for shown in (f"/operations/{made.pk}/", f"/runs/{run.pk}/", WHY, "yes from Maya Lindgren", "Reversed"):
        assert shown in page, shown
    page = priya.get(f"/operations/{made.pk}/").content.decode()
    for shown in (f"/operations/{credit.pk}/", f"/runs/{credit.run_id}/", "What it undoes", WHY):
        assert shown in page, shown
    if run.initiator.kind == Principal.Kind.INTEGRATION:
        undoes = desk.get(f"operations/{made.pk}").json()["undoes"]
        assert (undoes["operation"], undoes["reference"]) == (str(credit.pk), credit.external_reference)


def test_an_integration_proposes_what_a_run_of_its_own_did(undo: Undoing) -> None:
    _, credit = undo.credited()
    plain = Operator(tokens.issue(name="helpdesk", label="Help desk"))
    desk = Operator(tokens.issue(name="helpdesk", label="Help desk", may_operate=True))
    other = Operator(tokens.issue(name="other", label="Another system", may_operate=True))
    to = f"operations/{credit.pk}/reversal"
    refused = [one.post(to, reason=WHY) for one in (plain, other)]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [(403, "no_right"), (404, "not_found")]
    assert desk.post(to, reason=" ").status_code == desk.post(to).status_code == 422
    assert not Reversal.objects.exists()
    answer = desk.post(to, reason=WHY)
    assert (answer.status_code, answer.json()["state"], answer.json()["run"]) == (202, "Being proposed", None)
    again = desk.post(to, reason=WHY)
    assert (again.status_code, again.json()["code"]) == (409, "already_proposed")
    assert "Help desk has proposed" in again.json()["detail"]

    run = undo.world.work(undo.run_of(credit))
    assert (run.state, str(run.initiator)) == ("awaiting_approval", "Help desk")
    assert undo.world.vote(run).code == "approved"
    run = undo.world.work(run)
    undo.relay()
    assert (undo.state(credit), len(undo.voids())) == ("compensated", 1)
    answer = desk.post(to, reason=WHY)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_reversible")
    assert "It is reversed already." in answer.json()["detail"]
    told_of(undo, credit, run)


def test_a_person_proposes_it_by_a_command(undo: Undoing) -> None:
    first, credit = undo.credited()
    by = ("--as", "priya", "--reason", WHY)
    said, code = command(str(credit.pk), "--as", "maya", "--reason", WHY)
    assert code == 1 and "no_right  --as: maya may not propose this: use an account with that right." in said
    ticket = first.operations.exclude(pk=credit.pk).first()
    assert ticket is not None
    said, code = command(str(ticket.pk), *by)
    assert code == 1 and "not_reversible" in said
    assert "another operation" in command(str(credit.pk), "--case", "7", *by)[0]
    assert "there is no operation" in command(str(first.pk), *by)[0]
    assert "give an operation's id" in command("CN-1", *by)[0]
    assert "say why" in command(str(credit.pk), "--as", "priya", "--reason", " ")[0]
    assert not Reversal.objects.exists()
    said, code = command(str(credit.pk), *by)
    assert code == 0 and f"{credit.pk}  ok" in said
    said, code = command(str(credit.pk), *by)
    assert code == 1 and "Nothing was proposed a second time" in said
    run = undo.world.work(undo.run_of(credit))
    assert undo.world.vote(run).code == "approved"
    run = undo.world.work(run)
    undo.relay()
    told_of(undo, credit, run)
