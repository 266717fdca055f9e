"""`manage.py operate_runs --pause --state waiting --reason … --as priya`: one act on one run or many."""

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet

from agentops import acts
from agentops.management.people import acting_as, may_not
from agentops.pages.operating import sentence
from agentops.workflows.registry import WORKFLOWS
from runs.models import Run
from runs.models.run import LIVE
from runs.rights import NO_RIGHT

WORDS = {
    "pause": "let nothing new begin until it is resumed",
    "resume": "let a paused run go on where it was",
    "again": "try again now; where the outcome is not known this asks, and sends nothing",
    "to-person": "stop the machine's work on it; a person says how it goes on",
    "cancel": "end it: what has not started never will, what is in flight is settled first",
}


class Command(BaseCommand):
    help = (
        "Do one thing to every chosen run that is live, each in a transaction of its own, and print what became of "
        "each. Ends with 1 if any was refused. Interrupted, it may be given again: what was done is refused then."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        act = parser.add_mutually_exclusive_group(required=True)
        for key, words in WORDS.items():
            act.add_argument(f"--{key}", dest="act", action="store_const", const=key, help=words)
        parser.add_argument("--run", action="append", default=[], metavar="ID", help="a run; may be given repeatedly")
        parser.add_argument("--state", choices=[str(one) for one in LIVE], help="all live runs in this state")
        parser.add_argument("--workflow", help="all live runs of this workflow")
        parser.add_argument("--reason", required=True, help="kept in each run's record")
        parser.add_argument("--as", dest="user", required=True, metavar="USER", help="the account that does it")

    def handle(self, *args: Any, **options: Any) -> None:
        principal, refused = acting_as(options["user"]), 0
        if not options["reason"].strip() or len(options["reason"]) > 2000:
            raise CommandError("--reason: say why, in at most 2000 characters")
        ids = list(self._chosen(options).values_list("pk", flat=True))
        for pk in ids:
            result = acts.perform(act=options["act"], run_id=pk, principal=principal, reason=options["reason"])
            refused += not result.ok
            said = sentence(code=result.code, detail=result.detail)
            said = may_not(options["user"], "operate runs") if result.code == NO_RIGHT else said
            self.stdout.write(f"{pk}  {result.code}  {said}")
        self.stdout.write(f"{len(ids)} run(s): {len(ids) - refused} done, {refused} refused")
        if refused:
            raise SystemExit(1)

    def _chosen(self, options: dict[str, Any]) -> QuerySet[Run]:
        if options["run"]:
            if options["state"] or options["workflow"]:
                raise CommandError("--run: give runs by their ids, or a filter, not both")
            return self._named(options["run"])
        if not options["state"] and not options["workflow"]:
            raise CommandError("say which runs: --run, --state or --workflow")
        found = Run.objects.filter(finished_at__isnull=True)
        known = {*WORKFLOWS, *found.values_list("workflow", flat=True)}  # a live run's own may be gone from the code
        if options["workflow"] and options["workflow"] not in known:
            raise CommandError(f"--workflow: there is no {options['workflow']!r}; there are {', '.join(sorted(known))}")
        found = found.filter(state=options["state"]) if options["state"] else found
        found = found.filter(workflow=options["workflow"]) if options["workflow"] else found
        return found.order_by("created_at", "id")

    def _named(self, texts: list[str]) -> QuerySet[Run]:
        try:
            wanted = {uuid.UUID(text) for text in texts}
        except ValueError:
            raise CommandError("--run: give a run's id, as its page's address has it") from None
        found = Run.objects.filter(pk__in=wanted).order_by("created_at", "id")
        missing = wanted.difference(found.values_list("pk", flat=True))
        if missing:
            raise CommandError(f"--run: there is no run {', '.join(sorted(map(str, missing)))}; nothing was done")
        return found
