"""What the world does meanwhile: tickets come in through the HTTP API, invoices change, managers approve."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import requests
from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, connection

from agentops.chaos.schedule import CREDIT, SOURCE, Customer, Fault
from agentops.demo.sandbox_client import SandboxClient, SandboxDown
from agentops.demo.world import Story, sandbox_world
from approvals.models import ApprovalRequest
from approvals.services import votes
from runs.models import Run

log = logging.getLogger(__name__)
STARTERS = 3
CROWD = 80  # runs under way at which no more are started for the moment
MANAGERS = ("maya", "jonas")


def world(customers: Iterable[Customer]) -> dict[str, object]:
    """The customers as the sandbox takes them: four hours of outage each, worth a quarter of the month's invoice."""
    return sandbox_world(
        tuple(
            Story(
                ticket=ticket,
                account=one.account,
                name=f"Customer {one.number}",
                invoice=one.invoice,
                currency="usd",
                total_minor=one.total_minor,
                incident=f"INC-{one.number}",
                started_at="2026-10-22T13:14:00Z",
                ended_at="2026-10-22T17:48:00Z",
                subject="Outage on 22 October",
                body="We were down for hours on the 22nd and ask for the credit we are due.",
            )
            for one in customers
            for ticket in one.tickets
        )
    )


class Starts:
    """Starts each customer's runs at their time, again and again under the same key until the API has answered."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        sandbox: SandboxClient,
        customers: Sequence[Customer],
        under_way: Callable[[], int],
    ) -> None:
        self.answers: dict[str, set[str]] = {}  # ticket → the runs that its key was answered with
        self.repeats = self.retries = 0
        self.corrected = 0
        self._under_way = under_way
        self._url, self._sandbox = f"{url}/api/v1/runs", sandbox
        self._headers = {"Authorization": f"Bearer {token}"}
        self._left = sorted(customers, key=lambda one: one.starts_at, reverse=True)
        self._changes = sorted(
            (one.starts_at + at, one.invoice, total) for one in customers for at, total in one.corrections
        )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._start_all, daemon=True) for _ in range(STARTERS)]
        self._threads.append(threading.Thread(target=self._correct_all, daemon=True))
        self._begun = 0.0

    def begin(self) -> None:
        """Begin; the schedule's times count from now."""
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Give up what is left."""
        self._stop.set()

    @property
    def is_done(self) -> bool:
        """Whether everything has been started and every invoice has changed."""
        return not any(thread.is_alive() for thread in self._threads)

    def _wait_until(self, at: float) -> bool:
        return not self._stop.wait(max(0.0, self._begun + at - time.monotonic()))

    def _wait_for_room(self) -> bool:
        """Nobody queues before a slow machine without end: what is under way is under way in the storm."""
        while self._under_way() > CROWD:
            if self._stop.wait(0.5):
                return False
        return True

    def _start_all(self) -> None:
        session = requests.Session()
        while True:
            with self._lock:
                if not self._left:
                    return
                one = self._left.pop()
            if not self._wait_until(one.starts_at) or not self._wait_for_room():
                return
            if one.faults:
                self._sandbox.post("faults", {"faults": [_matched(one, fault) for fault in one.faults]})
            for ticket in one.tickets:
                self._insist(partial(self._ask, session, ticket))
                if one.again:
                    self._insist(partial(self._ask, session, ticket))
                    self.repeats += 1

    def _insist(self, act: Callable[[], bool]) -> None:
        while not self._stop.is_set() and not act():
            self.retries += 1
            self._stop.wait(0.3)

    def _ask(self, session: requests.Session, ticket: str) -> bool:
        """One request to start the run of a ticket; False when there was no good answer."""
        body = {"workflow": "service_credit", "input": {"ticket": ticket}}
        try:
            answer = session.post(
                self._url, json=body, headers={**self._headers, "Idempotency-Key": f"chaos-{ticket}"}, timeout=6
            )
        except requests.RequestException:
            return False
        if answer.status_code != 201:
            return False
        with self._lock:
            self.answers.setdefault(ticket, set()).add(answer.json()["id"])
        return True

    def _correct_all(self) -> None:
        for at, invoice, total in self._changes:
            if not self._wait_until(at):
                return
            try:
                body = {"total_minor": total, "reason": "Metering corrected"}
                self._sandbox.post(f"invoices/{invoice}/correct", body)
                self.corrected += 1
            except SandboxDown as problem:
                log.info("invoice %s was not corrected: %s", invoice, problem)


def _matched(one: Customer, fault: Fault) -> Fault:
    """The fault, for this customer's calls alone."""
    of_customer = fault["operation"] in (CREDIT, SOURCE)
    who = {"customer": one.billing_customer} if of_customer else {"ticket": one.tickets[0]}
    return {**fault, "match": {**fault.get("match", {}), **who}}


class Approver:
    """The managers: answer every open request, now and then twice and now and then both at once. Also counts states for
    the line of progress."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(name,), daemon=True) for name in MANAGERS]

    def begin(self) -> None:
        """Begin to look for requests."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """No more votes."""
        self._stop.set()
        for thread in self._threads:
            thread.join(15)

    def _work(self, username: str) -> None:
        turn = MANAGERS.index(username)
        while not self._stop.wait(0.25):
            try:
                user = User.objects.get(username=username)
                if turn == 0:
                    self._count()
                for request in ApprovalRequest.objects.filter(state="open").order_by("created_at")[:20]:
                    # each has half of them; every tenth both want to answer
                    if request.pk.int % 2 == turn or request.pk.int % 10 == 0:
                        self._vote(request, user)
            except (DatabaseError, InterfaceError):
                connection.close()  # the database is down or was; the next look makes a new connection
        connection.close()

    def _vote(self, request: ApprovalRequest, user: User) -> None:
        result = votes.cast(
            request_id=request.pk,
            user=user,
            choice="approve",
            comment="",
            page_digest=request.page_digest,
            acknowledged=True,
            authenticated_by="chaos command",
            channel="command",
        )
        self.codes[result.code] += 1

    def _count(self) -> None:
        self.states = Counter(Run.objects.values_list("state", flat=True))
