"""The stack as a context manager, with stand-ins for the product's programs and real servers below them."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from agentops.local.errors import LocalStackError
from agentops.local.plan import PROGRAMS, Entry, Program, Step, product
from agentops.local.postgres import EmbeddedPostgres
from agentops.local.stack import Stack
from agentops.local.valkey import EmbeddedValkey
from tests.local import stand_ins
from tests.local.observing import alive, eventually


@pytest.fixture
def stack(data_dir: Path) -> Iterator[Stack]:
    with Stack(data_dir, plan=stand_ins.usual, tests=True, env={"EXTRA": "given"}) as started:
        yield started


def notes(data_dir: Path) -> list[str]:
    return (data_dir / "notes").read_text().splitlines()


def variables_of(pid: int) -> dict[str, str]:
    pairs = (item.partition(b"=") for item in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if item)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def test_programs_get_what_they_need_and_not_the_owners_address(stack: Stack, data_dir: Path) -> None:
    seen = variables_of(stack.pids("worker")[0])
    assert seen["EXTRA"] == "given"
    assert seen["DATABASE_URL"] == stack.env["DATABASE_URL"]
    assert "agentops_app:" in seen["DATABASE_URL"]
    assert not {"OWNER_DATABASE_URL", "DJANGO_SETTINGS_MODULE"} & seen.keys()
    assert seen["SANDBOX_URL"] == stack.sandbox_url == seen["BILLING_URL"]
    assert min(len(seen[name]) for name in ("SECRET_KEY", "BILLING_API_KEY", "HELPDESK_TOKEN")) > 30
    assert "connected as agentops_owner" in (data_dir / "logs" / "migrate.log").read_text()
    with psycopg.connect(seen["DATABASE_URL"]) as connection:
        assert connection.info.user == "agentops_app"
    with urllib.request.urlopen(stack.url) as answer:
        assert answer.status == 200


def test_another_shell_finds_it_while_it_runs(data_dir: Path) -> None:
    path = data_dir / "stack.env"
    with Stack(data_dir, plan=stand_ins.usual, processes=("sandbox",), tests=True) as stack:
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert dict(line.split("=", 1) for line in lines) == stack.env
        assert path.stat().st_mode & 0o177 == 0
        first = stack.env
    assert not path.exists()
    with Stack(data_dir, plan=stand_ins.usual, processes=("sandbox",), tests=True) as stack:
        kept = ("SECRET_KEY", "SANDBOX_URL", "BILLING_WEBHOOK_SECRET", "HELPDESK_TOKEN")
        assert {name: stack.env[name] for name in kept} == {name: first[name] for name in kept}


def test_a_killed_program_takes_its_children_along_and_can_be_started_again(stack: Stack, data_dir: Path) -> None:
    eventually(lambda: len(stack.pids("worker")) == 2)
    before = stack.pids("worker")
    others = stack.pids("relay") + stack.pids("web") + stack.pids("postgres")
    stack.kill("worker")
    assert stack.pids("worker") == []
    eventually(lambda: not any(alive(pid) for pid in before))
    assert stack.status("worker") == -signal.SIGKILL
    stack.start("worker")
    assert stack.pids("worker")[0] not in before
    assert all(alive(pid) for pid in others)
    assert notes(data_dir).count("worker start") == 2


def test_killed_servers_start_again_under_the_same_address(stack: Stack) -> None:
    for name in ("postgres", "valkey"):
        assert len(stack.pids(name)) == 1
        stack.kill(name)
        assert stack.pids(name) == []
        stack.start(name)
    with psycopg.connect(stack.env["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert stack.valkey is not None
    assert stack.valkey.answers()


def test_stopping_ends_all_of_it_and_the_sandbox_last(data_dir: Path) -> None:
    with Stack(data_dir, plan=stand_ins.usual, tests=True) as stack:
        eventually(lambda: len(stack.pids("worker")) == 2)
        everything = [pid for name in (*stack.programs, "postgres", "valkey") for pid in stack.pids(name)]
        assert len(everything) == 7
    assert not any(alive(pid) for pid in everything)
    written = notes(data_dir)
    assert written[0] == "sandbox start"
    assert sorted(written[-3:-1]) == ["relay stop", "worker stop"]
    assert written[-1] == "sandbox stop"


def test_a_program_that_will_not_stop_is_killed(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentops.local.stack.STOP_SECONDS", 1.0)

    def plan(env: Mapping[str, str]) -> list[Entry]:
        return [Program("worker", stand_ins.python(stand_ins.STUBBORN), ready_line="ready.")]

    with Stack(data_dir, plan=plan, tests=True) as stack:
        pid = stack.pids("worker")[0]
    assert stack.status("worker") == -signal.SIGKILL
    assert not alive(pid)
    assert "asked to end" in (data_dir / "logs" / "worker.log").read_text()


def test_settings_are_looked_at_before_any_server_is_started(new_dir: Path) -> None:
    wrong = {"DEBUG": "maybe", "HOLIDAYS": "christmas", "PUBLIC_URL": "ops"}
    with pytest.raises(LocalStackError, match="The step settings failed") as caught, Stack(new_dir, env=wrong):
        raise AssertionError
    assert all(f"{name} is '{value}': " in str(caught.value) for name, value in wrong.items())
    assert not (new_dir / "postgres").exists() and not (new_dir / "logs" / "valkey.log").exists()
    with pytest.raises(LocalStackError) as caught, Stack(new_dir, env={"LEASE_SECONDS": "5"}):
        raise AssertionError
    assert "LEASE_SECONDS is 5 and CALL_LIMIT_SECONDS is 10" in str(caught.value)
    assert "christmas" not in str(caught.value), "an earlier start's lines are not this one's"


def test_external_servers_are_used_instead(new_dir: Path, shared: EmbeddedPostgres, tmp_path: Path) -> None:
    shared.create_database("external")
    with EmbeddedValkey(tmp_path) as broker:
        given = {
            "DATABASE_URL": shared.url("owner", "external"),
            "BROKER_URL": broker.broker_url(),
            "CHANNEL_URL": broker.channel_url(),
        }
        with Stack(new_dir, plan=stand_ins.usual, processes=("relay",), env=given) as stack:
            assert stack.servers() == {}
            assert "SANDBOX_URL" not in stack.env
            assert {name: variables_of(stack.pids("relay")[0])[name] for name in given} == given
            assert stack.env["OWNER_DATABASE_URL"] == given["DATABASE_URL"]
            assert stack.env["DEMO"] == "0"  # known passwords don't go into somebody's own database unasked
        assert broker.answers()
    assert not (new_dir / "postgres").exists()


def test_an_external_broker_alone_leaves_the_rest_embedded(data_dir: Path, tmp_path: Path) -> None:
    with EmbeddedValkey(tmp_path) as broker:
        given = {"BROKER_URL": broker.broker_url()}
        with Stack(data_dir, plan=stand_ins.usual, processes=(), env=given, tests=True) as stack:
            assert set(stack.servers()) == {"postgres", "valkey"}
            assert stack.env["BROKER_URL"] == given["BROKER_URL"]
            assert str(tmp_path) not in stack.env["CHANNEL_URL"]


def test_a_failing_step_stops_everything_and_shows_its_end(data_dir: Path) -> None:
    def plan(env: Mapping[str, str]) -> list[Entry]:
        return [*stand_ins.usual(env), Step("check", stand_ins.python("raise SystemExit('table is missing')"))]

    stack = Stack(data_dir, plan=plan, tests=True)
    with pytest.raises(LocalStackError, match=r"step check failed \(exit status 1\)(.|\n)*table is missing"), stack:
        pass
    assert set(stack.programs) == {"sandbox", "web", "worker", "relay"}
    assert all(stack.pids(name) == [] for name in (*stack.programs, "postgres", "valkey"))


def test_a_program_that_ends_at_its_start_is_explained(data_dir: Path) -> None:
    def plan(env: Mapping[str, str]) -> list[Entry]:
        return [Program("worker", stand_ins.python("raise SystemExit('no queue')"), ready_line="ready.")]

    with pytest.raises(LocalStackError, match=r"worker ended at its start \(exit status 1\)(.|\n)*no queue"):
        Stack(data_dir, plan=plan, tests=True).__enter__()


def test_one_folder_has_one_stack(data_dir: Path, impatient: None) -> None:
    with Stack(data_dir, plan=stand_ins.usual, processes=("relay",), tests=True) as stack:
        with pytest.raises(LocalStackError, match=r"in use by another running stack.*AGENTOPS_DATA"):
            Stack(data_dir, plan=stand_ins.usual).__enter__()
        assert len(stack.pids("relay")) == 1
        assert (data_dir / "stack.env").exists()


def test_the_products_plan_keeps_secrets_off_command_lines() -> None:
    env = {name: f"value-of-{name}" for name in ("BILLING_API_KEY", "BILLING_WEBHOOK_SECRET", "HELPDESK_TOKEN")}
    secrets = {*env.values(), "secret-url"}
    env |= {"AGENTOPS_DATA": "/d", "PORT": "8000", "SANDBOX_URL": "http://127.0.0.1:9000"}
    env |= {"OWNER_DATABASE_URL": "secret-url", "DATABASE_URL": "secret-url", "DEMO": "1"}
    entries = product(env)
    assert [entry.name for entry in entries if isinstance(entry, Program)] == list(PROGRAMS)
    assert not any(secret in part for entry in entries for part in entry.command for secret in secrets)


def test_a_step_for_a_database_of_ones_own_is_left_out_of_somebody_elses(
    data_dir: Path, shared: EmbeddedPostgres
) -> None:
    def plan(env: Mapping[str, str]) -> list[Entry]:
        return [Step("ours", stand_ins.python("print('ran')"), own_database=True)]

    with Stack(data_dir, plan=plan, tests=True):
        assert "ran" in (data_dir / "logs" / "ours.log").read_text()
    (data_dir / "logs" / "ours.log").unlink()
    shared.create_database("of_others")
    given = {"DATABASE_URL": shared.url("owner", "of_others")}
    with Stack(data_dir, plan=plan, env=given, tests=True):
        assert not (data_dir / "logs" / "ours.log").exists()


def test_what_ran_before_is_ended_only_in_a_database_of_ones_own_and_before_anything_runs() -> None:
    env = {"AGENTOPS_DATA": "/d", "PORT": "8000", "OWNER_DATABASE_URL": "x", "DATABASE_URL": "x"}
    entries = product(env)
    [step] = [entry for entry in entries if isinstance(entry, Step) and entry.own_database]
    assert step.name == "processes_ended" and step.command[-1] == "processes_ended"
    names = [entry.name for entry in entries]
    assert names.index("migrate") < names.index("processes_ended") < names.index("web")
