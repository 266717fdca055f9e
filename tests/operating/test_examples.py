"""`.env.example` and `compose.yaml` tell the truth about the settings."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import REPO

EXAMPLE = REPO / ".env.example"
# read by the local stack, or by compose.yaml alone
ELSEWHERE = {"OWNER_DATABASE_URL", "POSTGRES_PASSWORD", "OWNER_DB_PASSWORD", "APP_DB_PASSWORD"}


def listed() -> list[str]:
    return re.findall(r"^([A-Z_]+)=", EXAMPLE.read_text(), re.MULTILINE)


def test_every_setting_is_listed_once_and_no_other() -> None:
    source = (REPO / "agentops/settings.py").read_text()
    read = set(
        re.findall(r'\b(?:env|flag|number|one_of|web_address|amounts|parsed|listed|short_name)\("([A-Z_]+)"', source)
    ) | {"AGENTOPS_DATA"}
    assert len(read) > 20
    assert sorted(listed()) == sorted(read | ELSEWHERE)


def test_each_has_a_word_about_it() -> None:
    lines = [line for line in EXAMPLE.read_text().splitlines() if re.match(r"[A-Z_]+=", line)]
    assert all(len(line.partition(" # ")[2].strip()) >= 7 for line in lines)


def test_the_example_loads_and_is_refused_only_for_its_passwords(tmp_path: Path) -> None:
    script = f'set -a; . "{EXAMPLE}"; AGENTOPS_DATA="{tmp_path}"; exec "{sys.executable}" manage.py check'
    done = subprocess.run(
        ["sh", "-euc", script], cwd=REPO, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert re.findall(r"agentops\.\w+", done.stderr) == ["agentops.E002"], done.stderr


def test_compose_uses_what_the_example_sets() -> None:
    text = (REPO / "compose.yaml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    assert set(found["services"]) == {"postgres", "valkey"}
    assert set(re.findall(r"\$\{([A-Z_]+)", text)) <= set(listed())
    for one in found["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in one["ports"])
        for volume in one.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in found["volumes"] or (REPO / source).is_file()
