"""The engine in this process against a real sandbox and a real database: people are users, billing is a process."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agentops import engine
from agentops.demo.people import ensure_people, ensure_policies
from agentops.demo.world import sandbox_world
from agentops.starting import start_workflow
from approvals.models import ApprovalRequest
from approvals.services import votes
from runs.models import Principal, Run
from runs.services import principals
from tests import sandbox_process
from tests.sandbox_process import SandboxProcess


@pytest.fixture(scope="session")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    process = sandbox_process.start(tmp_path_factory.mktemp("sandbox"))
    yield process
    process.stop()


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    """A fresh outside world with the demo customers in it."""
    process = sandbox_process.start(tmp_path / "sandbox")
    process.world(sandbox_world())
    yield process
    process.stop()


@pytest.fixture
def world(db: str, sandbox: SandboxProcess, settings: Any) -> Iterator["World"]:
    settings.BILLING_URL = sandbox.url
    settings.HELPDESK_URL = f"{sandbox.url}/helpdesk/v1"
    settings.BILLING_API_KEY = sandbox_process.API_KEY
    settings.HELPDESK_TOKEN = sandbox_process.TOKEN
    settings.CALL_LIMIT_SECONDS = 1.0
    people = ensure_people()
    ensure_policies()
    yield World(sandbox, people)


class World:
    """What a test does: tickets come in, workers work, people click."""

    def __init__(self, sandbox: SandboxProcess, people: dict[str, User]) -> None:
        self.sandbox = sandbox
        self.people = people

    def start(self, ticket: str = "CS-8812") -> Run:
        desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
        return start_workflow(name="service_credit", data={"ticket": ticket}, initiator=desk).run

    def work(self, run: Run, *, until: Callable[[Run], bool] | None = None, seconds: float = 20) -> Run:
        """Let this process be the worker until the run is over or waits for a person (or `until` says so)."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            engine.advance(run_id=run.pk)
            run.refresh_from_db()
            if until is not None:
                if until(run):
                    return run
            elif run.is_over or run.state in ("awaiting_approval", "needs_person"):
                return run
            time.sleep(0.05)
        raise AssertionError(f"the run is still {run.state} (waits for {run.waits_for!r}, due {run.wake_at})")

    def request(self, run: Run) -> ApprovalRequest:
        return ApprovalRequest.objects.filter(run=run).latest("created_at")

    def vote(self, run: Run, who: str = "maya", choice: str = "approve", **more: Any) -> votes.VoteResult:
        request = self.request(run)
        return votes.cast(
            **{
                "request_id": request.pk,
                "user": self.people[who],
                "choice": choice,
                "comment": "" if choice == "approve" else "not this time",
                "page_digest": request.page_digest,
                "acknowledged": bool(request.changes),
                "authenticated_by": "password",
                "channel": "page",
                **more,
            }
        )

    def credits(self, **filters: Any) -> list[dict[str, Any]]:
        """The judge: the credit notes that billing really made."""
        return [row for row in self.sandbox.ledger(**filters) if row["operation"] == "billing.credit_notes.create"]
