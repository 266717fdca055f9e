"""The engine against a real sandbox and a real database: people are users, billing is a process, so are workers."""

import contextlib
import datetime as dt
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agentops import engine
from agentops.bench import measure, plain
from agentops.demo.people import ensure_people, ensure_policies
from agentops.demo.world import STORIES, sandbox_world
from agentops.local.postgres import EmbeddedPostgres
from agentops.starting import start_workflow
from agentops.steps import settling
from agentops.steps.base import Next, Step
from agentops.workflows.registry import WORKFLOWS
from approvals.models import ApprovalRequest
from approvals.services import votes
from reconciliation import classification, reversing
from reconciliation.models import Operation
from reconciliation.services import gates, processes
from runs import clock, retry
from runs.models import Principal, Run
from runs.services import principals
from runs.tools.registry import SYSTEMS, TOOLS
from tests import published, sandbox_process
from tests.engine import known
from tests.engine.model_run import CONTRACTS, TIME
from tests.engine.quick import quicken
from tests.engine.workers import Workers
from tests.sandbox_process import SandboxProcess

CREATE = "billing.credit_notes.create"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """One outside world for all tests here; each brings customers of its own into it."""
    process = sandbox_process.start(tmp_path_factory.mktemp("sandbox"))
    yield process
    process.stop()


@pytest.fixture(scope="session")
def worker_parent() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.stop()


@pytest.fixture
def manager(db: str, monkeypatch: pytest.MonkeyPatch) -> User:
    """The plain workflow, which needs nothing outside, and who decides in it."""
    monkeypatch.setitem(WORKFLOWS, plain.NAME, {"1": plain.Plain()})
    monkeypatch.setitem(TOOLS, plain.NOTE_CONTRACT.name, plain.KeepNote)
    monkeypatch.setitem(SYSTEMS, "plain", SYSTEMS["billing"])
    return measure.prepare()


@pytest.fixture
def world(
    db: str,
    sandbox: SandboxProcess,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    worker_parent: Workers,
    postgres: EmbeddedPostgres,
    tmp_path: Path,
) -> Iterator["World"]:
    settings.BILLING_URL = sandbox.url
    settings.HELPDESK_URL = f"{sandbox.url}/helpdesk/v1"
    settings.BILLING_API_KEY = sandbox_process.API_KEY
    settings.HELPDESK_TOKEN = sandbox_process.TOKEN
    quicken(monkeypatch)
    sandbox.clear_faults()
    tools, workflows = known.entries()
    for name, one in tools.items():
        monkeypatch.setitem(TOOLS, name, one)
    for name, versions in workflows.items():
        monkeypatch.setitem(WORKFLOWS, name, versions)
    people = ensure_people()
    ensure_policies()
    yield World(sandbox, people, workers=worker_parent, database=postgres.url("app", db), folder=tmp_path)
    sandbox.clear_faults()
    sandbox.settings(key_retention_seconds=24 * 3600)


@pytest.fixture
def model(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product's clock is the model's, and its settling step opens attempts through the history at hand. What is
    shared with other runs keeps the database's time, so nothing is asked of it here."""
    monkeypatch.setattr(clock, "now", TIME.now)
    monkeypatch.setattr(gates, "may_send", lambda **_: gates.Go(now=TIME.now()))
    monkeypatch.setattr(gates, "heard", lambda **_: None)

    def attempt(step: Step, proposal: Any, connector: Any, *, resend: classification.Resend) -> Next:
        connector._open(resend)
        return Next.GO_ON

    monkeypatch.setattr(settling, "attempt", attempt)
    monkeypatch.setattr(reversing, "contract", CONTRACTS.__getitem__)
    document = {"rules": [{"id": "all", "effect": "allow", "text": "Everything is allowed", "when": "true"}]}
    published.publish(slug="model", name="Model", tools=list(CONTRACTS), document=document, note="")


class World:
    """What a test does: tickets come in, workers work, people click. Tickets are named as in the demo world; each test
    has its own customers behind them."""

    def __init__(
        self, sandbox: SandboxProcess, people: dict[str, User], *, workers: Workers, database: str, folder: Path
    ) -> None:
        self.sandbox, self.people = sandbox, people
        self.workers, self.database, self.folder = workers, database, folder
        self.suffix = f"{next(_numbers):04d}"
        self.seen = max((row["seq"] for row in sandbox.ledger()), default=0)
        sandbox.world(sandbox_world(tuple(self.own(one) for one in STORIES)))

    def own(self, story: Any) -> Any:
        names = ("ticket", "account", "invoice", "incident")
        return replace(story, **{name: self.named(getattr(story, name)) for name in names})

    def named(self, name: str) -> str:
        """This test's own ticket, invoice, account or incident behind one of the demo world."""
        return name + self.suffix

    def start(self, ticket: str = "CS-8812", *, key: str = "") -> Run:
        desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
        data = {"ticket": self.named(ticket)}
        return start_workflow(name="service_credit", data=data, initiator=desk, start_key=key).run

    def start_other(self, workflow: str, **data: Any) -> Run:
        """A run of a workflow that only the documents or the tests know."""
        desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
        return start_workflow(name=workflow, data=data, initiator=desk).run

    def scripted(self, name: str, *waits: dict[str, Any]) -> Run:
        return self.start_other("scripted", name=name + self.suffix, waits=list(waits))

    def fault(self, mode: str, operation: str = CREATE, *, times: int | None = 1, **params: Any) -> None:
        self.sandbox.faults({"mode": mode, "operation": operation, "times": times, "params": params})

    def used(self) -> list[tuple[str, int]]:
        """The faults queued and how often each really happened."""
        return [(one["mode"], one["used"]) for one in self.sandbox.listed_faults()]

    def work(self, run: Run, *, until: Callable[[Run], bool] | None = None, seconds: float = 120) -> Run:
        """Let this process be the worker until the run is over or waits for a person (or `until` says so)."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            processes.record_ended()  # as the relay does
            engine.advance(run_id=run.pk)
            run.refresh_from_db()
            if until is not None:
                if until(run):
                    return run
            elif run.is_over or run.state in ("awaiting_approval", "needs_person"):
                return run
            time.sleep(0.03)
        raise AssertionError(f"the run is still {run.state} (waits for {run.waits_for!r}, due {run.wake_at})")

    def worker(
        self,
        run: Run,
        *,
        die_at: str = "",
        freeze_at: str = "",
        seconds: float = 120,
        scripted: Sequence[str] = ("1", "2"),
        **more: str,
    ) -> int:
        """A worker process on the run; it kills or freezes itself at a crash point, once."""
        env = {"FAULTPOINT": ""}
        if die_at or freeze_at:
            env = {"FAULTPOINT": f"{die_at or freeze_at}:{self.marker(die_at or freeze_at)}"}
            env["FAULTPOINT_SIGNAL"] = "STOP" if freeze_at else "KILL"
        env |= more
        return self.workers.start(run_id=run.pk, database=self.database, env=env, seconds=seconds, scripted=scripted)

    def marker(self, point: str) -> Path:
        """Exists once a worker has reached that crash point."""
        return self.folder / f"reached-{point}"

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

    def approved(self, ticket: str = "CS-8812") -> Run:
        """A run whose credit was approved and not yet sent."""
        run = self.work(self.start(ticket))
        assert run.state == "awaiting_approval", run.person_reason
        assert self.vote(run).code == "approved"
        return run

    @contextlib.contextmanager
    def first_question_later(self) -> Iterator[None]:
        """What is not confirmed is not asked about yet: on a slow machine the first question is due, and what it allows
        is sent, within the same claim."""
        usual = retry.backoff

        def later(**how: Any) -> dt.timedelta:
            return dt.timedelta(hours=1) if how.get("base") == 0.5 else usual(**how)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retry, "backoff", later)
            yield

    def unknown(self, mode: str = "execute_and_timeout") -> Run:
        """A run whose credit's outcome is not known, the other side not asked yet."""
        self.fault(mode)
        with self.first_question_later():
            run = self.work(self.approved(), until=lambda one: self.credit(one).state in ("unknown", "succeeded"))
        assert self.credit(run).state == "unknown" and self.used() == [(mode, 1)]
        self.ask_now(run)
        return run

    def ask_now(self, run: Run) -> None:
        """What is not confirmed is due to be asked about."""
        Operation.objects.filter(run=run).update(next_probe_at=clock.ClockTimestamp())
        Run.objects.filter(pk=run.pk).update(wake_at=clock.ClockTimestamp())

    def credit(self, run: Run) -> Operation:
        """The run's newest credit operation; a stand-in that was never made while there is none."""
        found = Operation.objects.filter(run=run, tool="billing.create_credit").order_by("created_at").last()
        return found or Operation(state="none")

    def effects(self, **filters: Any) -> list[dict[str, Any]]:
        """Everything that was really done outside since this test began; what people do there has no identity."""
        return [row for row in self.sandbox.ledger(**filters) if row["seq"] > self.seen and row["identity"]]

    def credits(self, **filters: Any) -> list[dict[str, Any]]:
        """The judge: the credit notes that billing really made."""
        return [row for row in self.effects(**filters) if row["operation"] == CREATE]
