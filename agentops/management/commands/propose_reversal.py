"""`manage.py propose_reversal OPERATION --reason … --as priya`: propose that what was done is undone."""

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentops.management.people import acting_as, may_not
from agentops.pages.reversal_words import refusal
from reconciliation.models import Operation
from reconciliation.services import reversals
from runs.rights import NO_RIGHT


class Command(BaseCommand):
    help = (
        "Propose that operations are undone, each by an action of its own. Nothing is undone until somebody else has "
        "approved it. Prints what became of each; ends with 1 if any was refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("operation", nargs="+", metavar="OPERATION", help="its id, as its page's address has it")
        parser.add_argument("--case", type=int, metavar="NUMBER", help="from this case: takes the right to settle it")
        parser.add_argument("--reason", required=True, help="whoever approves it reads this, and it is kept")
        parser.add_argument("--as", dest="user", required=True, metavar="USER", help="the account that proposes it")

    def handle(self, *args: Any, **options: Any) -> None:
        principal, refused = acting_as(options["user"]), 0
        if not options["reason"].strip() or len(options["reason"]) > 2000:
            raise CommandError("--reason: say why, in at most 2000 characters")
        case = options["case"]
        if case is not None and not 0 < case < 2**63:
            raise CommandError("--case: give its number, as RC-12 has 12")
        ids = self._named(options["operation"])
        for pk in ids:
            result = reversals.propose(
                operation_id=pk, principal=principal, reason=options["reason"], case_number=case
            )  # fmt: skip
            refused += not result.ok
            said = "Proposed" if result.ok else refusal(code=result.code, detail=result.detail)
            said = may_not(options["user"], "propose this") if result.code == NO_RIGHT else said
            self.stdout.write(f"{pk}  {result.code}  {said}")
        self.stdout.write(f"{len(ids)} operation(s): {len(ids) - refused} proposed, {refused} refused")
        if refused:
            raise SystemExit(1)

    def _named(self, texts: list[str]) -> list[uuid.UUID]:
        try:
            wanted = list(dict.fromkeys(uuid.UUID(text) for text in texts))
        except ValueError:
            raise CommandError("OPERATION: give an operation's id, as its page's address has it") from None
        known = set(Operation.objects.filter(pk__in=wanted).values_list("pk", flat=True))
        if missing := [str(one) for one in wanted if one not in known]:
            raise CommandError(f"OPERATION: there is no operation {', '.join(missing)}; nothing was proposed")
        return wanted
