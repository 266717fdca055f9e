"""Plays the documents' workflow through the engine, in a copy of the project: start, park, approve, complete."""

import json
import sys
import time

import django

django.setup()

from agentops import engine  # noqa: E402  # models need the set-up above
from agentops.demo.people import ensure_people, ensure_policies  # noqa: E402
from agentops.starting import start_workflow  # noqa: E402
from approvals.models import ApprovalRequest  # noqa: E402
from approvals.services import votes  # noqa: E402
from reconciliation.models import Operation  # noqa: E402
from runs.models import ModelCall, Principal, Run  # noqa: E402
from runs.services import principals  # noqa: E402


def work(run: Run, state: str) -> None:
    deadline = time.monotonic() + 120
    while run.state != state and time.monotonic() < deadline:
        engine.advance(run_id=run.pk)
        run.refresh_from_db()
    assert run.state == state, (run.state, run.person_reason)


def main(ticket: str) -> None:
    people = ensure_people()
    ensure_policies()
    desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
    data = {"ticket": ticket, "text": "Engineering has found the cause."}
    run = start_workflow(name="status_note", data=data, initiator=desk).run
    work(run, "awaiting_approval")
    request = ApprovalRequest.objects.get(run=run)
    before = Operation.objects.filter(run=run).count()
    result = votes.cast(
        request_id=request.pk,
        user=people["maya"],
        choice="approve",
        comment="",
        page_digest=request.page_digest,
        acknowledged=False,
        authenticated_by="password",
        channel="command",
    )
    work(run, "completed")
    operation = Operation.objects.get(run=run)
    json.dump(
        {
            "asked": request.ask,
            "before": before,
            "vote": result.code,
            "outcome": run.outcome,
            "identity": operation.identity,
            "model_calls": ModelCall.objects.filter(run=run).count(),
        },
        sys.stdout,
    )


main(sys.argv[1])
