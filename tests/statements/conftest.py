"""The engine's world with an outside of its own for each test, so that a period holds this test's records alone."""

import datetime as dt
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import stripe

from reconciliation.models import Statement
from reconciliation.services import statement_reading, statements
from runs import clock
from runs.models import Principal
from runs.services import principals
from runs.tools.billing import statement as billing_statement
from tests import sandbox_process
from tests.conftest import REPO
from tests.engine.conftest import World, worker_parent, world
from tests.sandbox_process import SandboxProcess

__all__ = ["worker_parent", "world"]
READ = "billing.credit_notes.list"
_READER = """
import sys, django
django.setup()
from reconciliation.services import statement_reading
from runs.tools.billing import statement
statement.PAGE = int(sys.argv[2])
statement_reading.PART = int(sys.argv[2])
statement_reading.work(number=int(sys.argv[1]), seconds=120)
"""


@pytest.fixture
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    process = sandbox_process.start(tmp_path_factory.mktemp("sandbox"))
    yield process
    process.stop()


@dataclass
class Books:
    """What an admin does with statements, and what others do at billing meanwhile."""

    world: World
    tomas: Principal
    since: dt.datetime
    folder: Path

    @property
    def billing(self) -> Any:
        url = self.world.sandbox.url
        return stripe.StripeClient(sandbox_process.API_KEY, base_addresses={"api": url}).v1

    def invoice(self, number: str) -> str:
        found = [one for one in self.world.sandbox.world()["invoices"] if one["number"] == self.world.named(number)]
        return str(found[0]["id"])

    def credit(self, amount: int, *, invoice: str = "INV-2041", **metadata: str) -> Any:
        """Somebody else makes a credit at billing."""
        asked: Any = {"invoice": self.invoice(invoice), "amount": amount, "metadata": metadata}
        return self.billing.credit_notes.create(asked)

    def ask(self, *, until: dt.datetime | None = None) -> Statement:
        started = statements.start_reading(
            system="billing", since=self.since, until=until or clock.read(), principal=self.tomas
        )
        assert started.statement is not None, started.code
        return started.statement

    def work(self, statement: Statement) -> Statement:
        statement_reading.work(number=statement.pk, seconds=120)
        statement.refresh_from_db()
        return statement

    def read(self) -> Statement:
        """A statement of everything since the test began, read and compared."""
        found = self.work(self.ask())
        assert found.stage == "finished", found.problem
        return found

    def due(self, statement: Statement) -> None:
        """Time passes until it may be gone on with."""
        Statement.objects.filter(pk=statement.pk, finished_at__isnull=True).update(due_at=clock.ClockTimestamp())

    def reader(self, statement: Statement, *, die_at: str, page: int = 3) -> int:
        """A worker process that kills itself there, once; its status."""
        marker = self.folder / f"reached-{next(_numbers)}"
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "agentops.settings",
            "DATABASE_URL": self.world.database,
            "BILLING_URL": self.world.sandbox.url,
            "BILLING_API_KEY": sandbox_process.API_KEY,
            "FAULTPOINT": f"{die_at}:{marker}",
        }
        done = subprocess.run(
            [sys.executable, "-c", _READER, str(statement.pk), str(page)], cwd=REPO, env=env, timeout=120, check=False
        )
        assert marker.exists()
        return done.returncode


_numbers = itertools.count(1)


@pytest.fixture
def books(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Books:
    monkeypatch.setattr(billing_statement.CreditNotes, "settling", dt.timedelta(0))
    since = clock.read().replace(microsecond=0) - dt.timedelta(seconds=1)
    return Books(world, principals.of_user(user=world.people["tomas"]), since, tmp_path)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def make(size: int) -> None:
        monkeypatch.setattr(billing_statement, "PAGE", size)

    make(3)
    return make
