"""The product's own plan: everything a person gets from `make run`, started once for this module."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentops.local.stack import Stack
from tests.conftest import REPO
from tests.local.conftest import awkward_folder
from tests.local.observing import alive, eventually

# the README's curl, and what it says comes of it
CALL = (
    r"(make_token).*?Idempotency-Key: ([^\"]+)\".*?-d '([^']+)' http://localhost:8000(\S+).*?moment\nlater \*([^*]+)\*"
)
pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with awkward_folder() as folder, Stack(folder, tests=True) as started:
        yield started


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.status == 200
        return str(answer.read().decode())


def test_pages_sandbox_and_demo_world_are_there(stack: Stack) -> None:
    assert "<form" in fetch(f"{stack.url}/accounts/login/")
    assert json.loads(fetch(f"{stack.sandbox_url}/_sandbox/health"))
    sign_ins = Path(stack.data_dir, "demo_sign_ins.txt").read_text().splitlines()
    assert len(sign_ins) >= 3


def test_the_api_answers_as_the_readme_says(stack: Stack) -> None:
    text = (REPO / "README.md").read_text()
    _, key, body, address, said = re.findall(CALL, text, re.DOTALL)[0]
    token = stack.manage("make_token", "helpdesk").stdout.split()[-1]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}

    def call(path: str, data: bytes | None = None) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(f"{stack.url}{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())

    status, run = call(address, body.encode())
    assert (status, run["subject"]) == (201, "CS-8840")
    assert call(address, body.encode()) == (201, run)
    eventually(lambda: call(f"{address}/{run['id']}")[1]["state"] == "awaiting_approval")
    assert call(f"{address}/{run['id']}")[1]["approval"]["ask"] == said


def test_another_shell_works_as_the_applications_role(stack: Stack) -> None:
    done = stack.manage(
        "shell", "--verbosity", "0", "-c", "from django.db import connection as c; print(c.settings_dict['USER'])"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "agentops_app"


def test_a_killed_worker_leaves_nothing_and_starts_again(stack: Stack) -> None:
    eventually(lambda: len(stack.pids("worker")) == 3)  # itself and two children
    before = stack.pids("worker")
    stack.kill("worker")
    eventually(lambda: not any(alive(pid) for pid in before))
    stack.start("worker")
    eventually(lambda: len(stack.pids("worker")) == 3)
    assert not set(before) & set(stack.pids("worker"))


def test_a_second_start_finds_everything_in_place(stack: Stack) -> None:
    assert stack.manage("migrate", "--check").returncode == 0
    again = stack.manage("demo_world")
    assert again.returncode == 0, again.stderr
