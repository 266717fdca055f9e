"""The whole product, as `make run` starts it, and people in real browsers. Only time limits are shorter."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dj_database_url
import pytest
from django.db import connections
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from agentops.demo.sandbox_client import SandboxClient
from agentops.demo.world import PASSWORD
from agentops.local.stack import Stack
from agentops.starting import start_workflow
from runs.models import Principal, Run
from runs.services import principals
from tests.conftest import copied

CREDIT = "billing.credit_notes.create"


class Product:
    """The running stack, with what a test needs to make things happen and to judge them."""

    def __init__(self, stack: Stack, armed: Path) -> None:
        self.stack = stack
        self.sandbox = SandboxClient(url=stack.sandbox_url)
        self.marker = armed

    def ticket_comes_in(self, ticket: str) -> Run:
        desk = principals.find_or_make(kind=Principal.Kind.INTEGRATION, key="integration:helpdesk", label="Help desk")
        return start_workflow(name="service_credit", data={"ticket": ticket}, initiator=desk).run

    def wait(self, run: Run, *states: str, seconds: float = 120) -> Run:
        def there() -> bool:
            run.refresh_from_db()
            return run.state in states

        self.until(there, f"the run to be {' or '.join(states)}", seconds)
        return run

    def until(self, there: Callable[[], bool], what: str, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if there():
                return
            time.sleep(0.1)
        raise AssertionError(f"waited {seconds} s for {what}")

    def fault(self, mode: str, invoice: str) -> None:
        body = {"mode": mode, "operation": CREDIT, "times": 1, "match": {"invoice": invoice}}
        self.sandbox.post("faults", body)

    def credits(self, invoice: str) -> list[dict[str, Any]]:
        """The judge: credit notes that billing really made against this invoice or a revision of it."""
        rows = self.sandbox.get("ledger", operation=CREDIT)["data"]
        return [row for row in rows if str(row["objects"].get("invoice_number", "")).startswith(invoice)]

    def faulted(self, mode: str, identity: str) -> list[dict[str, Any]]:
        """The calls that met the fault: the proof that it really happened."""
        rows = self.sandbox.get("requests", identity=identity)["data"]
        return [row for row in rows if row["fault"] == mode]


@pytest.fixture(scope="module")  # a whole stack takes from what runs beside it, so it ends with its module
def product(migrated: Path, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Product]:
    marker = tmp_path_factory.mktemp("faults") / "worker-died"
    marker.touch()  # while the file exists the crash point is spent; a test arms it by removing the file
    env = {
        "DEMO_RUNS": "0",
        "CALL_LIMIT_SECONDS": "2",
        "LEASE_SECONDS": "15",
        "FAULTPOINT": f"attempt.called:{marker}",
    }
    folder = copied(migrated, tmp_path_factory.mktemp("story") / "story data")
    with Stack(folder, env=env, tests=True) as stack:
        parsed = dj_database_url.parse(stack.env["DATABASE_URL"])
        target = connections["default"].settings_dict
        before = dict(target)
        target.update({key: parsed[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})
        with django_db_blocker.unblock():
            connections["default"].close()
            yield Product(stack, marker)
            connections["default"].close()
        target.update({key: before[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})


@pytest.fixture(scope="module")  # Playwright keeps a loop running in this thread: it must end with the module
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        yield browser
        browser.close()


class Person:
    """Somebody at a browser, signed in. Every error in the console and every policy violation is a failure."""

    def __init__(self, context: BrowserContext, url: str, username: str) -> None:
        self.page: Page = context.new_page()
        self.url = url
        self.errors: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        self.page.goto(f"{url}/accounts/login/")
        self.page.locator("input[name=login]").fill(username)
        self.page.locator("input[name=password]").fill(PASSWORD)
        self.page.locator("main button[type=submit], form button[type=submit]").first.click()
        expect(self.page.locator("h1").first).to_be_visible()

    def _hear(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.errors.append(f"{line.text} {line.location['url']}")

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page


@pytest.fixture
def sign_in(product: Product, chromium: Browser) -> Iterator[Callable[..., Person]]:
    contexts: list[BrowserContext] = []
    people: list[Person] = []

    def enter(username: str, **options: Any) -> Person:
        contexts.append(
            chromium.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 900}), **options)
        )
        people.append(Person(contexts[-1], product.stack.url, username))
        return people[-1]

    yield enter
    for context in contexts:
        context.close()
    # a browser reports a refused form (409) by itself; the loser of a race gets one
    problems = [line for person in people for line in person.errors if "status of 409" not in line]
    assert not problems, problems
