"""What a module says of itself in its first words is what the import contract holds."""

import ast
import re
import tomllib

from tests.architecture.test_sizes import REPO, sources


def test_every_module_that_calls_itself_pure_is_in_the_contract() -> None:
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [held] = [one["source_modules"] for one in contracts if one["name"] == "Pure modules know no Django"]
    told = {
        ".".join(path.relative_to(REPO).with_suffix("").parts)
        for path in sources()
        if "tests" not in path.parts and re.search(r"\bPure\b", ast.get_docstring(ast.parse(path.read_text())) or "")
    }
    assert len(told) > 40
    assert sorted(told - set(held)) == []
