"""`manage.py make_token <name>`: a token for an integration, shown once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.services import tokens


class Command(BaseCommand):
    help = "Make an API token for an integration; it is shown this once"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="short stable name of the integration, such as helpdesk")
        parser.add_argument("--label", default="", help="how people read it")

        parser.add_argument(
            "--may-operate", action="store_true", help="it may also pause, resume, cancel its own runs, and freeze"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name: str = options["name"]
        if not name.isascii() or not name.replace("-", "").isalnum() or len(name) > 60:
            raise CommandError("name: use letters, digits and hyphens, at most 60")
        label: str = options["label"] or name
        if not label.isprintable() or not label.strip() or len(label) > 200:
            raise CommandError("--label: use one line of readable text, at most 200 characters")
        self.stdout.write(tokens.issue(name=name, label=label, may_operate=options["may_operate"]))
