"""The list of approvals with few and with very many requests: server time and queries of each way to look at it."""

import os
import statistics
import time
from dataclasses import dataclass
from urllib.parse import urlencode

import psycopg
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from agentops import engine
from agentops.bench import measure
from agentops.bench.report import say
from agentops.local.stack import Stack
from approvals.models import ApprovalRequest
from reconciliation.services import processes
from runs.models import Run

LOOKS = 20
ALLOWED = 1.5  # times the server time with the fewest

# copies of one request, each with a run, a proposal and a stage of its own; half of them are asked of somebody else,
# a tenth is closed, and everything that the list can be narrowed or ordered by differs among them
TABLES = ("runs_run", "runs_proposal", "approvals_approvalrequest", "approvals_stage")
_COPIES = (
    """CREATE TEMP TABLE made AS SELECT n, n % 2 = 0 AS mine, n % 10 = 0 AS over, now() - n * {each} AS begun,
       gen_random_uuid() AS run, gen_random_uuid() AS proposal, gen_random_uuid() AS request
       FROM generate_series(%(first)s::int, %(last)s::int) n""",
    """INSERT INTO runs_run SELECT (jsonb_populate_record(r, jsonb_build_object('id', m.run, 'start_key', m.run,
       'subject', 'CS-' || m.n, 'customer', 'Customer ' || m.n))).* FROM made m, runs_run r WHERE r.id = %(run)s""",
    """INSERT INTO runs_proposal SELECT (jsonb_populate_record(p, jsonb_build_object('id', m.proposal, 'run_id', m.run,
       'identity', m.proposal, 'business_key', m.proposal, 'amount_minor', 100000 + m.n,
       'tool', CASE WHEN m.mine THEN p.tool ELSE 'plain.other' END,
       'currency', CASE WHEN m.n % 3 = 0 THEN 'EUR' ELSE 'USD' END))).* FROM made m, runs_proposal p
       WHERE p.run_id = %(run)s""",
    """INSERT INTO approvals_approvalrequest SELECT (jsonb_populate_record(a, jsonb_build_object('id', m.request,
       'run_id', m.run, 'proposal_id', m.proposal, 'ask', 'Keep a note on item ' || m.n, 'created_at', m.begun,
       'respond_by', now() + m.n * {each} + interval '5 minutes', 'valid_until', now() + interval '90 days',
       'group', CASE WHEN m.mine THEN a."group" ELSE 'others' END, 'action_digest', m.request,
       'state', CASE WHEN m.over THEN 'expired' ELSE 'open' END,
       'closed_at', CASE WHEN m.over THEN m.begun + interval '1 minute' END))).*
       FROM made m, approvals_approvalrequest a WHERE a.run_id = %(run)s""",
    """INSERT INTO approvals_stage SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(),
       'request_id', m.request, 'groups', CASE WHEN m.mine THEN s.groups ELSE '["others"]'::jsonb END))).*
       FROM made m, approvals_stage s
       JOIN approvals_approvalrequest a ON a.id = s.request_id WHERE a.run_id = %(run)s""",
    "DROP TABLE made",
)
_EACH = "interval '20 seconds'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One way to look at the list: milliseconds of server time, and queries."""

    p50: float
    p95: float
    queries: int


def addresses(*, user: User, middle: ApprovalRequest) -> dict[str, str]:
    """Each tab, order and filter that the page offers, and the places in the list that links lead to."""
    asker, page = str(middle.run.initiator_id), reverse("inbox")
    wanted: dict[str, dict[str, str]] = {f"tab {tab}": {"tab": tab} for tab in ("mine", "others", "decided", "all")}
    wanted |= {f"mine, order {order}": {"tab": "mine", "order": order} for order in ("new", "old")}
    wanted |= {f"{tab}, largest": {"tab": tab, "order": "large", "currency": "USD"} for tab in ("mine", "decided")}
    wanted["decided, order old"] = {"tab": "decided", "order": "old"}
    filters = {
        "customer": {"q": middle.run.customer},
        "no such customer": {"q": "no such customer"},
        "amount": {"q": "1,000.10"},
        "action": {"tool": middle.proposal.tool},
        "no such action": {"tool": "no.such"},
        "amount from, few": {"least": "1000.00", "most": "1000.50", "currency": "USD"},
        "amount up to, many": {"most": "9000.00", "currency": "USD"},
        "currency": {"currency": "EUR"},
        "asked of": {"group": "manager"},
        "started by": {"asker": asker},
        "policy": {"rule": "plain"},
        "rule": {"rule": "plain/manager"},
        "no such rule": {"rule": "plain/none"},
        "within the hour": {"due": "hour"},
        "for over a week": {"age": "week"},
    }
    wanted |= {f"filter {name}": {"tab": "mine", **given} for name, given in filters.items()}
    wanted["filter answered by you"] = {"tab": "others", "by": "me"}
    wanted["further down"] = {"tab": "mine", "after": str(middle.pk)}
    wanted["back at a row"] = {"tab": "mine", "around": str(middle.pk)}
    found = {name: f"{page}?{urlencode(given)}" for name, given in wanted.items()}
    listing = urlencode({"list": ""})
    return found | {
        "what arrived": f"{reverse('arrivals')}?{listing}",
        "a decision page": f"{reverse('decision', args=[middle.pk])}?{listing}",
    }


def measure_inbox(*, stack: Stack, numbers: list[int]) -> int:
    """Print the table; the exit status is 1 where the number of queries grew with the number of requests."""
    manager = measure.prepare()
    like = _one_waiting()
    taken: dict[str, list[Seen]] = {}
    there = 0
    for number in numbers:
        fill(url=stack.env["OWNER_DATABASE_URL"], like=like.run_id, first=there + 1, last=number)
        there = number
        say(f"\n{number:,} requests, load {os.getloadavg()[0]:.1f}")
        middle = _middle()
        for name, seen in look(user=manager, wanted=addresses(user=manager, middle=middle)).items():
            taken.setdefault(name, []).append(seen)
    return _told(taken, numbers)


def _one_waiting() -> ApprovalRequest:
    """One request that really waits, taken there by this process."""
    processes.current()
    [item] = measure.submit(count=1)
    engine.advance(run_id=Run.objects.get(subject=item).pk)
    return ApprovalRequest.objects.get(run__subject=item)


def _middle() -> ApprovalRequest:
    """A request that waits for the reader, two pages down."""
    mine = ApprovalRequest.objects.filter(state="open", group="manager", run__customer__startswith="Customer")
    return mine.select_related("run", "proposal").order_by("respond_by")[100]


def fill(*, url: str, like: object, first: int, last: int) -> None:
    """Copy what belongs to the run `like` until there are `last`. `url` is the owner's: rows begin in their first
    state, and these are in the middle of their lives."""
    with psycopg.connect(url, autocommit=True) as session:
        for table in TABLES:
            session.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        try:
            for statement in _COPIES:
                given = {"first": first, "last": last, "run": like} if "%(" in statement else None
                plain = statement.replace("{each}", _EACH)
                if given is not None:
                    plain = plain.replace(" % ", " %% ")
                session.execute(plain, given)
        finally:
            for table in TABLES:
                session.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        session.execute("VACUUM ANALYZE")


def look(*, user: User, wanted: dict[str, str]) -> dict[str, Seen]:
    """Each address in turn, again and again, so that what else the machine does meets all alike."""
    browser = Client(SERVER_NAME="localhost")
    browser.force_login(user)
    took: dict[str, list[float]] = {name: [] for name in wanted}
    counts: dict[str, int] = {}
    for round_ in range(LOOKS + 1):
        for name, address in wanted.items():
            asked = _Counter()
            with connection.execute_wrapper(asked):
                began = time.perf_counter()
                status = browser.get(address).status_code
                spent = 1000 * (time.perf_counter() - began)
            if status != 200:
                raise measure.BenchFailed(f"{address} was answered {status}")
            if round_:  # the first look finds nothing at hand
                took[name].append(spent)
                counts[name] = asked.count
    return {
        name: Seen(p50=statistics.median(all_), p95=statistics.quantiles(all_, n=20)[18], queries=counts[name])
        for name, all_ in took.items()
    }


class _Counter:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        self.count += 1
        return execute(sql, params, many, context)


def _told(taken: dict[str, list[Seen]], numbers: list[int]) -> int:
    width = max(len(name) for name in taken)
    heads = "   ".join(f"{number:>9,}: p50  p95 ms" for number in numbers)
    say(f"\n  {'':{width}}  {heads}   p95 times  queries")
    grew = []
    for name, seen in taken.items():
        figures = "   ".join(f"{one.p50:14.1f} {one.p95:8.1f}" for one in seen)
        times = seen[-1].p95 / seen[0].p95
        asked = sorted({one.queries for one in seen})
        grew += [name] if len(asked) > 1 else []
        mark = f"  above {ALLOWED}" if times > ALLOWED else ""
        say(f"  {name:{width}}  {figures}   {times:9.2f}  {', '.join(map(str, asked))}{mark}")
    if grew:
        say(f"\nThe number of queries is not the same with more requests: {', '.join(grew)}")
    return 1 if grew else 0
