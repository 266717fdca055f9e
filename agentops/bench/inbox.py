"""The list of approvals with few and with very many requests: server time and queries of each way to look at it."""

import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psycopg
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import reverse

from agentops import engine
from agentops.bench import measure
from agentops.bench.machine import say
from agentops.local.stack import Stack
from approvals.models import ApprovalRequest
from approvals.services import staffing
from reconciliation.services import processes
from runs.garbage import keep_what_is_here
from runs.models import Run

LOOKS = int(os.environ.get("BENCH_LOOKS", "20"))
ALLOWED = 1.5  # times the time with the fewest
PLACES = 6  # queries more that a list with rows and pages takes than an empty one; each row would take fifty

# copies of one request, each with a run, a proposal and a stage of its own; half of them are asked of somebody else,
# a tenth is closed, and everything that the list can be narrowed or ordered by differs among them. The first are due
# within the hour, so that it fills a page at each size; those that have waited longest are due last.
_MADE = """CREATE TEMP TABLE made AS SELECT n, n % 2 = 0 AS mine, n % 10 = 0 AS over,
  (n::bigint * 7919 % 100003) / 100003.0 * interval '30 days' AS away,
  gen_random_uuid() AS run, gen_random_uuid() AS proposal, gen_random_uuid() AS request
  FROM generate_series({first}, {last}) n"""
_COPIES = {
    "runs_run": """'id', m.run, 'start_key', m.run, 'subject', 'CS-' || m.n,
      'customer', 'Customer ' || lpad(m.n::text, 6, '0')""",
    "runs_proposal": """'id', m.proposal, 'run_id', m.run, 'identity', m.proposal, 'business_key', m.proposal,
      'amount_minor', 100000 + m.n, 'currency', CASE WHEN m.n % 3 = 0 THEN 'EUR' ELSE 'USD' END,
      'tool', CASE WHEN m.mine THEN o.tool ELSE 'plain.other' END""",
    "approvals_approvalrequest": """'id', m.request, 'run_id', m.run, 'proposal_id', m.proposal,
      'ask', 'Keep a note on item ' || m.n, 'created_at', now() - m.away,
      'respond_by', now() + interval '25 minutes' + CASE WHEN m.n <= 200 THEN m.n % 30 * interval '1 minute'
        ELSE m.away END,
      'valid_until', now() + interval '90 days', 'group', CASE WHEN m.mine THEN o."group" ELSE 'others' END,
      'amount_minor', 100000 + m.n, 'currency', CASE WHEN m.n % 3 = 0 THEN 'EUR' ELSE 'USD' END,
      'words', 'Customer ' || m.n || E'\\nCS-' || m.n, 'action_digest', m.request,
      'state', CASE WHEN m.over THEN 'expired' ELSE 'open' END,
      'closed_at', CASE WHEN m.over THEN now() - m.away + interval '1 minute' END""",
    "approvals_stage": """'id', gen_random_uuid(), 'request_id', m.request,
      'groups', CASE WHEN m.mine THEN o.groups ELSE '["others"]'::jsonb END""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One way to look at the list: milliseconds of server time, of processor time in it (this process and its session
    of the database, which what else the machine does makes no longer), and queries."""

    p50: float
    p95: float
    busy: float  # processor time, p50: what is left when others take the machine
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
    _somebody_else(manager)
    like = _one_waiting()
    taken: dict[str, list[Seen]] = {}
    looked: list[str] = []
    there = 0
    for number in numbers:
        fill(url=stack.env["OWNER_DATABASE_URL"], like=like, first=there + 1, last=number)
        there = number
        say(f"\n{number:,} requests, load {os.getloadavg()[0]:.1f}")
        middle = _middle()
        for name, seen in look(user=manager, wanted=addresses(user=manager, middle=middle)).items():
            taken.setdefault(name, []).append(seen)
        looked.append(f"{number:,}: {look_for_nobody()}")
    status = _told(taken, numbers)
    say("\nLooking for requests that too few can answer, every half minute; one look, milliseconds of processor time:")
    for line in looked:
        say(f"  {line}")
    return status


def _somebody_else(manager: User) -> None:
    """Whom the other half asks, with the same rights."""
    others, _ = Group.objects.get_or_create(name="others")
    others.permissions.set(manager.groups.get().permissions.all())
    User.objects.get_or_create(username="bench-other")[0].groups.add(others)


def look_for_nobody() -> str:
    """What the relay's look for requests that too few can answer takes, all of the way round."""
    session, asked, last = _session(), _Counter(), None
    looks: list[float] = []
    while not looks or last is not None:
        used = _used(session)
        with connection.execute_wrapper(asked):
            looked = staffing.work_off(after=last)
        looks.append(1000 * (_used(session) - used))
        last = looked.last
        if looked.woken:
            raise measure.BenchFailed(f"{looked.woken} requests were found that too few can answer")
    several = f"{len(looks)} looks for all, the longest " if len(looks) > 1 else ""
    return f"{several}{max(looks):.1f}, {asked.count // len(looks)} queries"


def _one_waiting() -> ApprovalRequest:
    """One request that really waits, taken there by this process."""
    processes.current()
    [item] = measure.submit(count=1)
    engine.advance(run_id=Run.objects.get(subject=item).pk)
    return ApprovalRequest.objects.get(run__subject=item)


def _middle() -> ApprovalRequest:
    """A request that waits for the reader, two pages down."""
    mine = ApprovalRequest.objects.filter(state="open", group="manager", run__customer__startswith="Customer")
    return mine.select_related("run", "proposal").order_by("respond_by")[min(100, mine.count() // 2)]


def fill(*, url: str, like: ApprovalRequest, first: int, last: int) -> None:
    """Copy the request with what belongs to it until there are `last`. `url` is the owner's: rows begin in their first
    state, and these are in the middle of their lives."""
    of = {"runs_run": ("id", like.run_id), "approvals_stage": ("request_id", like.pk)}
    with psycopg.connect(url, autocommit=True) as session:
        for table in _COPIES:
            session.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        try:
            session.execute(_MADE.format(first=first, last=last))
            for table, fields in _COPIES.items():
                column, value = of.get(table, ("run_id", like.run_id))
                copies = f"SELECT (jsonb_populate_record(o, jsonb_build_object({fields}))).* FROM made m, {table} o"
                session.execute(f"INSERT INTO {table} {copies} WHERE o.{column} = '{value}'")
            session.execute("DROP TABLE made")
        finally:
            for table in _COPIES:
                session.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        session.execute("VACUUM ANALYZE")


def look(*, user: User, wanted: dict[str, str]) -> dict[str, Seen]:
    """Each address in turn, again and again, so that what else the machine does meets all alike."""
    browser = Client(SERVER_NAME="localhost")
    browser.force_login(user)
    session = _session()
    keep_what_is_here()  # as a web process does that has started
    took: dict[str, list[float]] = {name: [] for name in wanted}
    busy: dict[str, list[float]] = {name: [] for name in wanted}
    counts: dict[str, int] = {}
    for round_ in range(LOOKS + 1):
        for name, address in wanted.items():
            asked = _Counter()
            with connection.execute_wrapper(asked):
                began, used = time.perf_counter(), _used(session)
                status = browser.get(address).status_code
                spent, cost = time.perf_counter() - began, _used(session) - used
            if status != 200:
                raise measure.BenchFailed(f"{address} was answered {status}")
            if round_:  # the first look finds nothing at hand
                took[name].append(1000 * spent)
                busy[name].append(1000 * cost)
                counts[name] = min(asked.count, counts.get(name, asked.count))
    return {
        name: Seen(
            p50=statistics.median(all_), p95=_p95(all_), busy=statistics.median(busy[name]), queries=counts[name]
        )
        for name, all_ in took.items()
    }


def _p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[18] if len(found) > 1 else found[0]


def _session() -> Path:
    """Where the processor time of this process' session of the database is told."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return Path(f"/proc/{cursor.fetchone()[0]}/schedstat")


def _used(session: Path) -> float:
    """Seconds of processor time of this process and of its session, see proc(5), schedstat."""
    return time.process_time() + int(session.read_text().split()[0]) / 1e9


class _Counter:
    """Counts statements, without looks at the clock: how many of those there are hangs on the machine's speed."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        self.count += not sql.startswith("SELECT clock_timestamp()")
        return execute(sql, params, many, context)


def _told(taken: dict[str, list[Seen]], numbers: list[int]) -> int:
    width = max(len(name) for name in taken)
    heads = "  ".join(f"{number:>9,}: p50    p95   busy" for number in numbers)
    say(f"\n  {'milliseconds':{width}}  {heads}   p95 times  busy times  queries")
    grew = []
    for name, seen in taken.items():
        figures = "  ".join(f"{one.p50:14.1f} {one.p95:6.1f} {one.busy:6.1f}" for one in seen)
        times, more = seen[-1].p95 / seen[0].p95, seen[-1].busy / seen[0].busy
        asked = [one.queries for one in seen]
        grew += [name] if asked[-1] > asked[0] + PLACES else []
        mark = f"  above {ALLOWED}" if more > ALLOWED else ""
        say(f"  {name:{width}}  {figures}   {times:9.2f}   {more:9.2f}  {', '.join(map(str, asked))}{mark}")
    say("\np95 times is server time, busy times the median of processor time, the most beside the fewest.")
    if grew:
        say(f"More requests take more queries: {', '.join(grew)}")
    return 1 if grew else 0
