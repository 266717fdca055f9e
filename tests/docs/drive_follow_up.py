"""Plays the documents' waiting workflow through the engine, in a copy of the project: event, timer, note, end."""

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
from runs.models import Principal, Run, Wait  # noqa: E402
from runs.services import principals, signalling, waits  # noqa: E402


def work(run: Run, waits_for: str) -> None:
    """Until it waits for that, or is over when that is empty."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        waits.wake_for_ended_runs(limit=10)
        engine.advance(run_id=run.pk)
        run.refresh_from_db()
        if run.waits_for == waits_for if waits_for else run.is_over:
            return
    raise AssertionError((run.state, run.waits_for, run.person_reason))


def main(ticket: str) -> None:
    people = ensure_people()
    ensure_policies()
    desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
    run = start_workflow(name="follow_up", data={"ticket": ticket, "quiet_seconds": 1}, initiator=desk).run
    work(run, "the event “fix released”")
    signalling.send(run_id=run.pk, key="r", kind="fix_released", payload={"version": "4.2"}, sender=desk)
    work(run, "the timer “quiet”")
    work(run, f"another run: Status note on ticket {ticket}")
    note = Wait.objects.get(run=run, key="note").other
    assert note is not None
    while note.state != "awaiting_approval":
        engine.advance(run_id=note.pk)
        note.refresh_from_db()
    request = ApprovalRequest.objects.get(run=note)
    votes.cast(
        request_id=request.pk,
        user=people["maya"],
        choice="approve",
        comment="",
        page_digest=request.page_digest,
        acknowledged=False,
        authenticated_by="password",
        channel="command",
    )
    work(note, "")
    work(run, "")
    json.dump({"outcome": run.outcome, "note": note.outcome, "runs": Run.objects.count()}, sys.stdout)


main(sys.argv[1])
