"""`manage.py start_run <file.json>`: start a run from a file that a person wrote."""

import os
import pwd
import re
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentops.management.files import read_file
from agentops.starting import BadInput, start_workflow
from agentops.workflows.registry import UnknownWorkflow
from runs.models import Principal
from runs.services import principals
from runs.services.runs import StartConflict

FIELDS = {"workflow", "input", "key"}
EXAMPLE = '{"workflow": "service_credit", "input": {"ticket": "CS-8840"}}'
KEY = re.compile(r"[\x21-\x7e]{0,150}")


def _user() -> str:
    """Who runs the command: the account that the operating system names, by number where it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name[:150]
    except KeyError:  # a container's number without a name
        return f"uid-{os.getuid()}"


class Command(BaseCommand):
    help = 'Start a run from a JSON file: {"workflow": "service_credit", "input": {"ticket": "CS-8840"}, "key": "…"}'

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        found = read_file(path, known=FIELDS, example=EXAMPLE)
        for field, kind in (("workflow", str), ("input", dict)):
            if not isinstance(found.get(field), kind):
                raise CommandError(
                    f"{path}: field {field!r} is missing or is not {'text' if kind is str else 'an object'}"
                )
        key = found.get("key", "")
        if not isinstance(key, str) or not KEY.fullmatch(key):
            raise CommandError(f"{path}: field 'key' must be text of at most 150 visible ASCII characters")
        user = _user()
        initiator = principals.find_or_make(
            kind=Principal.Kind.INTEGRATION, key=f"integration:command-line:{user}", label=f"command line ({user})"
        )
        try:
            started = start_workflow(
                name=found["workflow"],
                data=found["input"],
                initiator=initiator,
                start_key=f"file:{key}" if key else "",
            )
        except UnknownWorkflow as problem:
            raise CommandError(f"{path}: field 'workflow': {problem}") from None
        except BadInput as problem:
            lines = "\n".join(f"  input.{one['field']}: {one['message']}" for one in problem.faults)
            raise CommandError(f"{path}: the input is not accepted:\n{lines}") from None
        except StartConflict as problem:
            raise CommandError(
                f"{path}: field 'key' was used before for run {problem.run.id} with other input"
            ) from None
        self.stdout.write(
            f"{'started' if started.created else 'already there'}: run {started.run.id} ({started.run.title})"
        )
