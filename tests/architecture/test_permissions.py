"""Every right that is asked for is one that there is: a wrong name would refuse everybody, or everybody but the admins
of the site, and say nothing."""

import ast
import re
from collections.abc import Iterator

from django.apps import apps

from agentops.permissions import GROUPS
from tests.architecture.test_one_sender import sources
from tests.architecture.test_sizes import REPO

OURS = ("runs", "approvals", "reconciliation")
ASKS = {"needs", "has_perm", "entitled", "entitled_held", "objection"}


def there_are() -> set[str]:
    found = set()
    for app in OURS:
        for model in apps.get_app_config(app).get_models():
            meta = model._meta
            found |= {f"{app}.{action}_{meta.model_name}" for action in meta.default_permissions}
            found |= {f"{app}.{codename}" for codename, _ in meta.permissions}
    return found


def asked_for() -> Iterator[tuple[str, str]]:
    """Where, and what: given to a function that asks, or kept under a name to be given."""
    named = re.compile(rf"({'|'.join(OURS)})\.[a-z]+_?[a-z]*")
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                given = [*node.args, *(one.value for one in node.keywords if one.arg == "permission")]
                if function in ASKS:
                    yield from ((name, one.value) for one in given if isinstance(one, ast.Constant) and one.value)
            value = node.value.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) else ""
            if named.fullmatch(str(value)):
                yield name, value
    for path in (REPO / "templates").rglob("*.html"):
        for right in re.findall(r"\bperms\.(\w+\.\w+)", path.read_text()):
            yield str(path.relative_to(REPO)), right


def test_every_right_that_is_asked_for_exists() -> None:
    asked = list(asked_for())
    assert len(asked) > 80
    assert [(where, right) for where, right in asked if right not in there_are()] == []


def test_every_group_is_given_rights_that_exist() -> None:
    assert {right for rights in GROUPS.values() for right in rights} - there_are() == set()
