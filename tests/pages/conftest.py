"""A real server on the test's own database, and real Chromium that refuses to overlook a broken policy or script."""

import os
import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from agentops.local.postgres import EmbeddedPostgres
from tests.pages.world import PASSWORD
from tests.runpages.serving import listens
from tests.web_forge import WebProcess, forge


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def site(db: str, postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[str]:
    """The address of the product served by uvicorn on the test's database."""
    port = free_port()
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "agentops.settings",
        "DATABASE_URL": postgres.url("app", db),
        "AGENTOPS_DATA": str(tmp_path),
        "PORT": str(port),
        "DEMO": "1",
        "PUBLIC_URL": f"http://localhost:{port}",
    }
    log = tmp_path / "server.log"
    server = forge().start(env=env, log=log, port=port, log_level="warning")
    url = f"http://localhost:{port}"
    try:
        _wait(url, port, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=120)


def _wait(url: str, port: int, server: WebProcess, log: Path) -> None:
    for _ in range(1200):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{url}/accounts/login/", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            if listens(server, port):
                return
            time.sleep(0.1)
    raise AssertionError(f"the server did not answer\n{log.read_text()}")


@pytest.fixture(scope="module")  # Playwright keeps a loop running in this thread: it must end with the module
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        yield browser
        browser.close()


@dataclass
class Visitor:
    """One browser session. `faults` collects what the console says about policies, scripts and failed loads."""

    context: BrowserContext
    url: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda entry: self.faults.append(entry.text) if entry.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def sign_in(self, name: str) -> None:
        """Through the page; the server does not know the fast hash that this process uses."""
        hashed = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
        assert User.objects.filter(username=name).update(password=hashed) == 1
        self.page.goto(f"{self.url}/accounts/login/")
        self.page.get_by_label("User name").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.wait_for_url(lambda address: "/login" not in address)

    def goto(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def assert_sound(self, *, known: tuple[str, ...] = ()) -> None:
        """No broken content policy, no script error, and nothing axe objects to. `known` faults are expected ones."""
        assert [fault for fault in self.faults if not any(part in fault for part in known)] == []
        found = Axe().run(self.page)
        assert found.violations_count == 0, found.generate_report()


@pytest.fixture
def visitor(site: str, chromium: Browser) -> Iterator[Visitor]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, timezone_id="America/New_York")
    context.set_default_timeout(60_000)
    yield Visitor(context=context, url=site)
    context.close()
