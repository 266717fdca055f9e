"""`manage.py tokens`: which tokens integrations hold, and the end of one by `--revoke <id>`."""

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.models import ApiToken
from runs.services import tokens


class Command(BaseCommand):
    help = "List the API tokens of integrations, newest first; --revoke ends one at once"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--revoke", metavar="ID", help="the id of the token to end, as listed")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["revoke"] is not None:
            self._revoke(options["revoke"])
            return
        for one in ApiToken.objects.select_related("principal").order_by("-created_at"):
            state = f"revoked {one.revoked_at:%Y-%m-%d %H:%M %Z}" if one.revoked_at else "live"
            state += ", may operate" if one.may_operate else ""
            self.stdout.write(f"{one.pk}  {one.principal.key}  made {one.created_at:%Y-%m-%d %H:%M %Z}  {state}")

    def _revoke(self, text: str) -> None:
        try:
            wanted = uuid.UUID(text)
        except ValueError:
            raise CommandError("--revoke: give a token's id as `manage.py tokens` lists it") from None
        if not tokens.revoke(token_id=wanted):
            raise CommandError(f"--revoke: there is no live token {wanted}")
        self.stdout.write(f"revoked {wanted}")
