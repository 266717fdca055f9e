"""The API's own page, in real Chromium under the strict content policy: everything is local, nothing is blocked."""

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from agentops.local.variables import free_port
from tests.conftest import REPO

WATCH = """
window.blocked = [];
document.addEventListener("securitypolicyviolation", e => blocked.push(e.violatedDirective + " " + e.blockedURI));
"""


@pytest.fixture
def site() -> Iterator[str]:
    """The web process alone: this page needs no database."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "agentops.asgi:application", "--port", str(port)]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "agentops.settings", "PORT": str(port)}
    process = subprocess.Popen(command, cwd=REPO, env=env, stderr=subprocess.PIPE, text=True)
    try:
        _wait(process, "Uvicorn running")
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait(process: Any, words: str) -> None:
    said, deadline = "", time.monotonic() + 120
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while words not in said:
            assert process.poll() is None and time.monotonic() < deadline, said
            if selector.select(timeout=0.5):
                said += process.stderr.readline()


@pytest.mark.browser
def test_the_docs_page_works_under_the_strict_policy(site: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        page = browser.new_page()
        requests: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_init_script(WATCH)
        answer = page.goto(f"{site}/api/v1/docs")
        assert answer is not None and answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy
        page.get_by_text("/api/v1/runs", exact=True).click()
        page.get_by_text("1 to 128 visible ASCII characters").wait_for()
        page.get_by_text("parameters").first.wait_for()
        page.wait_for_load_state("networkidle")
        blocked = page.evaluate("window.blocked")
        browser.close()
    assert len(requests) >= 4 and all(url.startswith((site, "data:")) for url in requests)
    assert (blocked, errors) == ([], [])


def test_the_schema_is_served_and_names_what_a_caller_needs(client: Any) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    start = schema["paths"]["/api/v1/runs"]["post"]
    assert {one["name"] for one in start["parameters"]} == {"Idempotency-Key"}
    assert {"201", "400", "401", "413", "422"} <= set(start["responses"])
    assert start["security"] and "security" not in schema["paths"]["/api/v1/events/billing"]["post"]
