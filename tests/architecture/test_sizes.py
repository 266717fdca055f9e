"""Files stay under 400 lines and functions under 60, tests included: what one person can hold."""

import ast
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=REPO, capture_output=True, text=True, check=True
    )
    return [REPO / name for name in listed.stdout.splitlines() if "/migrations/" not in name and (REPO / name).exists()]


def test_files_and_functions_are_small() -> None:
    long: list[str] = []
    found = sources()
    assert len(found) > 20
    for path in found:
        text = path.read_text()
        if len(text.splitlines()) >= 400:
            long.append(f"{path.relative_to(REPO)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size >= 60:
                    long.append(f"{path.relative_to(REPO)}:{node.lineno} {node.name}: {size} lines")
    assert not long, "\n".join(long)


def test_no_catch_all_modules() -> None:
    banned = {"utils.py", "helpers.py", "signals.py"}
    assert [path for path in sources() if path.name in banned] == []
