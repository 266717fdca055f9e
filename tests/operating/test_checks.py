"""What is wrong with the settings is said by the setting's name, with a remedy and a stable id."""

import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from agentops import checks

GOOD: dict[str, Any] = {
    "DEBUG": False,
    "DEMO": False,
    "SECRET_KEY": "kq3Vw0y-9fZrTn5xLb7mHc2sJd8gPa4e",
    "DATABASE_URL": "postgresql://app:secret@db/agentops",
    "BROKER_URL": "redis://broker/0",
    "CHANNEL_URL": "redis://broker/1",
    "BILLING_URL": "https://billing.example",
    "BILLING_API_KEY": "sk",
    "BILLING_WEBHOOK_SECRET": "whsec",
    "HELPDESK_URL": "https://desk.example/v1",
    "HELPDESK_TOKEN": "token",
    "AGENT_MODEL": "rules",
    "PUBLIC_URL": "https://ops.example.com",
    "ALLOWED_HOSTS": ["ops.example.com"],
    "EMAIL_URL": "smtp://mail.example.com",
    "MAIL_FROM": "agentops@ops.example.com",
    "LEASE_SECONDS": 60.0,
    "CALL_LIMIT_SECONDS": 10.0,
}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The checks' ids and messages with some settings changed."""
    monkeypatch.setattr(sys, "argv", ["manage.py", "check"])

    def run(**changed: Any) -> dict[str, str]:
        with override_settings(**{**GOOD, **changed}):
            return {one.id: str(one.msg) for one in checks.settings_are_usable() if one.id}

    return run


def test_good_settings_are_silent(said: Any) -> None:
    assert said() == {}


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("agentops.E001", {"SECRET_KEY": ""}, "SECRET_KEY is not set"),
    ("agentops.E002", {"SECRET_KEY": "short"}, "print(secrets.token_urlsafe(50))' makes one"),
    ("agentops.E002", {"SECRET_KEY": "a" * 60}, "SECRET_KEY"),
    ("agentops.E002", {"SECRET_KEY": "insecure-until-the-stack-makes-one"}, "SECRET_KEY"),
    ("agentops.E003", {"DATABASE_URL": ""}, "DATABASE_URL is not set"),
    ("agentops.E007", {"BROKER_URL": "redis+unix:///run/redis.sock"}, "BROKER_URL must begin with one of redis://"),
    ("agentops.E007", {"BROKER_URL": "valkey://broker/0"}, "BROKER_URL"),
    ("agentops.E007", {"BROKER_URL": "broker:6379"}, "BROKER_URL"),
    ("agentops.E007", {"BROKER_URL": ""}, "BROKER_URL"),
    ("agentops.E009", {"CHANNEL_URL": "redis+socket:///run/redis.sock"}, "CHANNEL_URL"),
    ("agentops.E009", {"CHANNEL_URL": "amqp://broker//"}, "CHANNEL_URL"),
    *[
        ("agentops.E011", {name: value}, f"{name} is not set")
        for name in ("BILLING_URL", "BILLING_API_KEY", "BILLING_WEBHOOK_SECRET", "HELPDESK_URL", "HELPDESK_TOKEN")
        for value in ("", "  ")
    ],
    ("agentops.E011", {"BILLING_URL": "billing.example"}, "BILLING_URL is not a web address"),
    ("agentops.E011", {"HELPDESK_URL": "ftp://desk.example"}, "HELPDESK_URL is not a web address"),
    ("agentops.E021", {"MAIL_FROM": "agentops"}, "MAIL_FROM is"),
    ("agentops.E021", {"MAIL_FROM": "a@b.example\nBcc: c@d.example"}, "MAIL_FROM is"),
    ("agentops.W022", {"EMAIL_URL": "console:"}, "EMAIL_URL is not set"),
    ("agentops.E012", {"AGENT_MODEL": "gpt"}, "AGENT_MODEL is 'gpt'"),
    ("agentops.E012", {"AGENT_MODEL": ""}, "AGENT_MODEL"),
    ("agentops.E012", {"AGENT_MODEL": "test:{"}, "AGENT_MODEL"),
    ("agentops.E012", {"AGENT_MODEL": "nobody:model"}, "AGENT_MODEL"),
    ("agentops.E012", {"AGENT_MODEL": "openai:gpt-5"}, "pip install 'pydantic-ai-slim[openai]'"),
    *[
        ("agentops.E013", {"PUBLIC_URL": value}, "PUBLIC_URL")
        for value in (
            "", "ops.example.com", "ftp://ops.example.com", "https://", "https://a/b", "https://a?b", "https://u@a",
            "https://a:99999", "https://a:x", "https://[::1", " https://a", "https://a\n",
        )
    ],
    ("agentops.E014", {"DEMO": True}, "DEMO is on for ops.example.com"),
    ("agentops.E014", {"DEBUG": True}, "DEBUG is on for ops.example.com"),
    ("agentops.E015", {"LEASE_SECONDS": 10.0}, "raise LEASE_SECONDS"),
    ("agentops.E015", {"LEASE_SECONDS": 5.0}, "LEASE_SECONDS"),
    ("agentops.E015", {"LEASE_SECONDS": 30.0, "AGENT_MODEL": 'test:{"kind": "escalate"}'}, "longest a model"),
    ("agentops.W016", {"LEASE_SECONDS": 19.0}, "at least twice"),
    ("agentops.E018", {"ALLOWED_HOSTS": ["localhost"]}, "ALLOWED_HOSTS does not hold ops.example.com"),
    ("agentops.W019", {"PUBLIC_URL": "http://ops.example.com"}, "plain http"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "changed", "words"), CASES, ids=lambda value: str(value)[:40])
def test_each_fault_has_its_id_and_names_its_setting(
    said: Any, number: str, changed: dict[str, Any], words: str
) -> None:
    found = said(**changed)
    assert list(found) == [number], found
    assert words in found[number]
    assert next(iter(changed)) in found[number]


GOOD_ONES: list[dict[str, Any]] = [
    {"BROKER_URL": "amqp://guest:guest@broker//"},
    {"BROKER_URL": "rediss://broker/0", "CHANNEL_URL": "rediss://broker/1"},
    {"BROKER_URL": "redis+socket:///run/v.sock?virtual_host=1", "CHANNEL_URL": "unix:///run/v.sock?db=2"},
    {"PUBLIC_URL": "http://localhost:8000", "DEMO": True, "ALLOWED_HOSTS": ["localhost"]},
    {"PUBLIC_URL": "http://127.0.0.1", "DEBUG": True, "ALLOWED_HOSTS": []},
    {"PUBLIC_URL": "http://[::1]:8000", "DEMO": True, "ALLOWED_HOSTS": ["[::1]"]},
    {"ALLOWED_HOSTS": [".example.com"]},
    {"ALLOWED_HOSTS": ["*"]},
    {"AGENT_MODEL": 'test:{"kind": "escalate"}'},
    {"LEASE_SECONDS": 20.0},
]


@pytest.mark.parametrize("changed", GOOD_ONES, ids=lambda value: str(value)[:60])
def test_what_is_right_is_not_complained_about(said: Any, changed: dict[str, Any]) -> None:
    assert said(**changed) == {}


def test_secrets_are_never_quoted(said: Any) -> None:
    hidden = "hidden-word"
    found = said(
        SECRET_KEY=hidden,
        BROKER_URL=f"redis+unix://:{hidden}@x",
        CHANNEL_URL=f"{hidden}",
        BILLING_URL=f"ftp://me:{hidden}@x",
    )
    assert len(found) == 4 and hidden not in str(found)


@pytest.mark.parametrize("command", ["migrate", "makemigrations"])
def test_commands_that_start_nothing_are_let_through(said: Any, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(SECRET_KEY="", DATABASE_URL="")
    monkeypatch.setattr(sys, "argv", ["manage.py", command])
    assert said(SECRET_KEY="", DATABASE_URL="") == {}
    monkeypatch.setattr(sys, "argv", ["pytest", command])
    assert said(SECRET_KEY="", DATABASE_URL="")


def test_another_package_of_our_name_is_pointed_out(said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rival = tmp_path / "agentops"
    rival.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert said() == {}  # a folder alone is no package
    (rival / "__init__.py").touch()
    found = said()
    assert list(found) == ["agentops.W020"] and str(rival) in found["agentops.W020"]


def test_another_package_in_the_place_of_ours_is_an_error(said: Any, tmp_path: Path) -> None:
    found = said(BASE_DIR=tmp_path)
    assert "agentops.E017" in found and "uninstall" in found["agentops.E017"]


def test_the_checks_are_registered(said: Any) -> None:
    """Django runs them, and they are not only there to be called."""
    with override_settings(**{**GOOD, "DEMO": True}):
        assert "agentops.E014" in {one.id for one in run_checks()}
