"""`manage.py publish_policy <file.json>`: put a policy's first version in force, when the product is set up.

A further version takes two people, on the policy's page; this command refuses it.
"""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentops.management.files import read_file
from approvals.services import policies
from approvals.services.policies import PolicyInvalid
from runs.services import principals

FIELDS = {"slug": str, "name": str, "tools": list, "note": str, "document": dict}


class Command(BaseCommand):
    help = (
        "Publish a policy's first version from a JSON file (see examples/policy.json); the same document again changes"
        " nothing, and a further version takes two people on the policy's page"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        found = read_file(path, known=set(FIELDS), example="examples/policy.json")
        for field, kind in FIELDS.items():
            if not isinstance(found.get(field), kind):
                wanted = {str: "text", list: "a list", dict: "an object"}[kind]
                raise CommandError(f"{path}: field {field!r} is missing or is not {wanted}")
        if not all(isinstance(one, str) for one in found["tools"]):
            raise CommandError(f"{path}: field 'tools' must be a list of names of tools")
        try:
            version = policies.publish(**found, publisher=principals.system())
        except PolicyInvalid as problem:
            raise CommandError(f"{path}: the policy is not accepted:\n{problem}") from None
        self.stdout.write(f"in force: {version}")
