"""The documents' examples work as they stand: applied to a copy of the project, checked, and run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentops.local.postgres import EmbeddedPostgres
from tests import sandbox_process
from tests.docs.examples import DOCUMENTS, apply, blocks, copy_project
from tests.outside import Outside

NEW = {"runs/tools/helpdesk/comment.py", "agentops/workflows/status_note.py", "agentops/workflows/follow_up.py"}
EDITED = {"runs/tools/registry.py", "agentops/workflows/registry.py"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the examples in it."""
    target = tmp_path_factory.mktemp("project")
    copy_project(target)
    assert set(apply(target)) == NEW | EDITED
    return target


def run(project: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "HOME": str(project), "SECRET_KEY": "only-for-tests"}
    return subprocess.run(
        command, cwd=project, env={**clean, **env}, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_documents_touch_what_they_say() -> None:
    assert {block.path for document in DOCUMENTS for block in blocks(document)} == NEW | EDITED
    assert all(block.text.strip() for document in DOCUMENTS for block in blocks(document))


def test_the_entry_that_is_shown_is_the_one_that_is_tried() -> None:
    root = Path(__file__).parents[2]
    _, _, shown = (root / "docs/add-a-tool.md").read_text().partition('    "draft_reply": Case(')
    entry = shown.partition("\n    ),\n")[0]
    tried = (root / "tests/tools/test_conformance.py").read_text()
    assert entry and f'    "draft_reply": Case({entry}\n    ),' in tried


def test_the_examples_are_as_tidy_as_the_rest(project: Path) -> None:
    for command in (["ruff", "check"], ["ruff", "format", "--check"]):
        done = run(project, sys.executable, "-m", *command, *sorted(NEW | EDITED))
        assert done.returncode == 0, done.stdout + done.stderr
    assert max(len((project / name).read_text().splitlines()) for name in NEW) < 400


def test_the_examples_keep_to_the_layers(project: Path) -> None:
    done = run(project, str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_posts_one_comment(project: Path, outside: Outside) -> None:
    ticket = outside.customer()["ticket"]["id"]
    done = run(
        project, sys.executable, "-m", "tests.docs.drive_status_note", ticket,
        DJANGO_SETTINGS_MODULE="agentops.settings", AGENTOPS_DATA=str(project / ".data"),
        HELPDESK_URL=outside.helpdesk.url, HELPDESK_TOKEN=sandbox_process.TOKEN,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["absent"] == 0
    [reference] = set(said["references"])
    assert len(said["references"]) == 3
    assert said["mismatches"] == [{}, {}, {}]
    assert said["outcome"] == f"Comment {reference} is on ticket {ticket}"
    assert said["key"].startswith(f"comment/{ticket}/")
    [effect] = outside.process.ledger(identity=said["identity"])
    assert effect["objects"]["ticket"] == ticket
    assert len(outside.process.requests(identity=said["identity"], operation="helpdesk.comments.create")) == 2
    [comment] = [one for one in outside.process.world()["comments"] if one["ticket"] == ticket]
    assert (comment["body"], comment["public"]) == ("Engineering has found the cause.", False)


def test_the_example_workflow_runs_through_the_engine(
    project: Path, outside: Outside, postgres: EmbeddedPostgres, database: str
) -> None:
    ticket = outside.customer()["ticket"]["id"]
    done = run(
        project, sys.executable, "-m", "tests.docs.drive_engine", ticket,
        DJANGO_SETTINGS_MODULE="agentops.settings", AGENTOPS_DATA=str(project / ".data"),
        DATABASE_URL=postgres.url("app", database), CHANNEL_URL="redis://127.0.0.1:9/0",
        HELPDESK_URL=outside.helpdesk.url, HELPDESK_TOKEN=sandbox_process.TOKEN,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["before"], said["vote"], said["model_calls"]) == (0, "approved", 0)
    assert said["asked"] == f"Post a comment on ticket {ticket}"
    assert said["outcome"].endswith(f"is on ticket {ticket}")
    [effect] = outside.process.ledger(identity=said["identity"])
    assert effect["objects"]["ticket"] == ticket


def test_the_waiting_example_waits_and_ends(
    project: Path, outside: Outside, postgres: EmbeddedPostgres, database: str
) -> None:
    ticket = outside.customer()["ticket"]["id"]
    done = run(
        project, sys.executable, "-m", "tests.docs.drive_follow_up", ticket,
        DJANGO_SETTINGS_MODULE="agentops.settings", AGENTOPS_DATA=str(project / ".data"),
        DATABASE_URL=postgres.url("app", database), CHANNEL_URL="redis://127.0.0.1:9/0",
        HELPDESK_URL=outside.helpdesk.url, HELPDESK_TOKEN=sandbox_process.TOKEN,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["runs"] == 2 and said["outcome"] == f"The customer was told about the fix. {said['note']}"
    [comment] = [one for one in outside.process.world()["comments"] if one["ticket"] == ticket]
    assert comment["body"] == "The fix is out with version 4.2."
