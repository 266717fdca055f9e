"""`manage.py webhooks`: which other systems are told of requests; `--add URL`, `--renew ID`, `--end ID`."""

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Count, Q

from agentops.management.people import acting_as, may_not
from agentops.telling import addresses
from approvals.models import Endpoint
from approvals.services import endpoints


class Command(BaseCommand):
    help = "List the endpoints that are told of requests for approval; add one, renew its secret or end it"

    def add_arguments(self, parser: CommandParser) -> None:
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--add", metavar="URL", help="tell this address from now on; its secret is shown this once")
        act.add_argument("--renew", metavar="ID", help="make a new secret, shown this once; the old one ends at once")
        act.add_argument("--end", metavar="ID", help="tell this endpoint nothing any more")
        parser.add_argument("--as", dest="person", metavar="NAME", help="who does it; needed for every change")

    def handle(self, *args: Any, **options: Any) -> None:
        if not (options["add"] or options["renew"] or options["end"]):
            self._list()
            return
        if not options["person"]:
            raise CommandError("--as: say under whose name this is done")
        actor = acting_as(options["person"])
        if actor.user is None or not actor.user.has_perm("approvals.change_endpoint"):
            raise CommandError(may_not(options["person"], "change who is told"))
        if options["add"]:
            try:
                addresses.check(url=options["add"])
                endpoint, secret = endpoints.add(url=options["add"], actor=actor)
            except addresses.BadAddress as problem:
                raise CommandError(f"--add: {problem}") from None
            except endpoints.AlreadyThere:
                raise CommandError("--add: this address is told already") from None
            self.stdout.write(f"{endpoint.pk}\n{secret}")
        elif options["renew"]:
            secret_now = endpoints.renew(endpoint_id=_id(options["renew"]), actor=actor)
            if secret_now is None:
                raise CommandError("--renew: there is no such endpoint")
            self.stdout.write(secret_now)
        else:
            if not endpoints.end(endpoint_id=_id(options["end"]), actor=actor):
                raise CommandError("--end: there is no such endpoint")
            self.stdout.write("ended")

    def _list(self) -> None:
        counted = {
            "delivered": Count("deliveries", filter=Q(deliveries__result="delivered")),
            "waiting": Count("deliveries", filter=Q(deliveries__ended_at=None)),
            "given_up": Count("deliveries", filter=Q(deliveries__result="given_up")),
        }
        for one in Endpoint.objects.annotate(**counted).order_by("added_at"):
            state = "ended" if one.ended_at else f"failed {one.failures} times in a row" if one.failures else "live"
            numbers = f"{one.delivered} delivered, {one.waiting} waiting, {one.given_up} given up"  # type: ignore[attr-defined]  # counted above
            self.stdout.write(f"{one.pk}  {one.url}  {state}; {numbers}")


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise CommandError("give an endpoint's id as `manage.py webhooks` lists it") from None
