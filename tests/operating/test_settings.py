"""Settings that cannot be read at all end every command with one sentence that names them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO

NEEDED = {
    "SECRET_KEY": "kq3Vw0y-9fZrTn5xLb7mHc2sJd8gPa4e",
    "DATABASE_URL": "postgresql:///none",
    "DJANGO_SETTINGS_MODULE": "agentops.settings",
}


def manage(*arguments: str, data: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=REPO, env={**clean, **NEEDED, "AGENTOPS_DATA": str(data), **env}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DATABASE_URL", "mysql://me:hidden-word@x/y", "must begin with postgresql://"),
        ("DATABASE_URL", "me:hidden-word@x/y", "percent-encoded"),
        ("DATABASE_URL", "postgresql://me:hidden-word@[::1/y", "percent-encoded"),
        ("DATABASE_URL", "postgresql://me:hidden-word@x:port/y", "percent-encoded"),
        ("LEASE_SECONDS", "a minute", "positive number"),
        ("LEASE_SECONDS", "-1", "positive number"),
        ("CALL_LIMIT_SECONDS", "nan", "positive number"),
        ("CALL_LIMIT_SECONDS", "inf", "positive number"),
        ("FACT_FRESH_SECONDS", "0", "positive number"),
        ("SETTLE_ALONE_UP_TO", "1000", "USD=1000.00"),
        ("SETTLE_ALONE_UP_TO", "USD=1,000", "USD=1000.00"),
        ("SETTLE_ALONE_UP_TO", "USD=1000,XXQ=5", "currency in use"),
        ("EMAIL_URL", "smtp://me:hidden-word@", "smtp+tls://"),
        ("EMAIL_URL", "imap://me:hidden-word@mail.example", "smtp+tls://"),
        ("EMAIL_URL", "smtp://hidden-word@mail.example", "password"),
        ("EMAIL_URL", "file:mails", "file:/folder"),
        ("DEMO_RUNS", "none", "give 1 or 0"),
        ("PREPARE_STATEMENTS", "never", "give 1 or 0"),
        ("CONNECTOR_GROUNDS", "billing.create_credit", "billing.create_credit=ours.grounds.credit"),
        ("WORKING_HOURS", "17:00-09:00", "the earlier time first"),
        ("WORKING_ZONE", "Mars", "Europe/London"),
        ("WORKING_DAYS", "lun", "mon,tue"),
        ("PORT", "80 00", "a number from 1 to 65535"),
        ("PORT", "65536", "a number from 1 to 65535"),
        ("INSTALLATION", "ours/east", "letters, digits"),
    ],
)
def test_one_sentence_and_no_trace(tmp_path: Path, name: str, value: str, words: str) -> None:
    for command in (["check"], ["relay"]):
        done = manage(*command, data=tmp_path, **{name: value})
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(name) and words in done.stderr
        assert len(done.stderr.splitlines()) == 1 and "hidden-word" not in done.stderr


def test_all_that_cannot_be_read_is_named_together(tmp_path: Path) -> None:
    wrong = {"DEBUG": "maybe", "HOLIDAYS": "christmas", "LEASE_SECONDS": "x", "PUBLIC_URL": "ops", "LOG_LEVEL": "loud"}
    done = manage("check", data=tmp_path, **wrong)
    lines = done.stderr.splitlines()
    assert sorted(line.split(" is ")[0] for line in lines) == sorted(wrong)
    assert all(": give " in line or ": write " in line for line in lines)


def test_hosts_may_stand_apart(tmp_path: Path) -> None:
    hosts = {"ALLOWED_HOSTS": "localhost, ops.example.com", "PUBLIC_URL": "https://ops.example.com"}
    assert "ALLOWED_HOSTS" not in manage("check", data=tmp_path, **hosts).stderr
    hosts["PUBLIC_URL"] = "https://other.example.com"
    assert "ALLOWED_HOSTS does not hold other.example.com" in manage("check", data=tmp_path, **hosts).stderr


def test_a_command_refuses_to_start_on_bad_settings(tmp_path: Path) -> None:
    done = manage("relay", data=tmp_path)
    assert done.returncode == 1 and "agentops.E011" in done.stderr and "BILLING_URL" in done.stderr
    done = manage("check", data=tmp_path, SECRET_KEY="")
    assert done.returncode == 1 and "agentops.E001" in done.stderr
