"""Takes the examples out of the documents and applies them, verbatim, to a copy of the project."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DOCUMENTS = ("docs/add-a-tool.md", "docs/add-a-workflow.md")
_BLOCK = re.compile(r"^```python\n# (file|edit): (\S+?)(?:, below: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A complete file, or lines that go below the line `below` (as it stands there, spaces and all)."""

    path: str
    below: str
    text: str


def blocks(document: str) -> list[Block]:
    """The marked blocks of a document; every Python block is one."""
    source = (REPO / document).read_text()
    found = [
        Block(path, below, text)
        for kind, path, below, text in _BLOCK.findall(source)
        if (kind == "edit") == bool(below)
    ]
    assert len(found) == len(_PYTHON.findall(source)), f"{document} has a Python block that says not where it goes"
    return found


def copy_project(target: Path) -> None:
    """The files of the work tree as they are, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=REPO, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (REPO / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / name, target / name)


def apply(target: Path) -> list[str]:
    """Apply all blocks to the copy and return the paths they touched."""
    touched = []
    for document in DOCUMENTS:
        for block in blocks(document):
            path = target / block.path
            if block.below:
                _insert(path, block)
            else:
                assert not path.exists(), f"{block.path} exists already"
                path.write_text(block.text)
            touched.append(block.path)
    return touched


def _insert(path: Path, block: Block) -> None:
    lines = path.read_text().splitlines(keepends=True)
    [at] = [number for number, line in enumerate(lines) if line.rstrip("\n") == block.below]
    path.write_text("".join([*lines[: at + 1], block.text, *lines[at + 1 :]]))
