"""A list of very many requests: what is read is what is shown, by index, however many there are."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from agentops.pages import inbox_filters
from approvals import lists, queries
from approvals.models import ApprovalRequest
from approvals.services import staffing as looking
from runs.models import Run
from tests.approvals import world
from tests.statements_sent import statements_sent

pytestmark = pytest.mark.usefixtures("db")
MANY = 12_000

# copies of one request, each with a run and a proposal of its own; half of them asked of another group, some closed
FILL = """
ALTER TABLE runs_run DISABLE TRIGGER USER;
ALTER TABLE approvals_approvalrequest DISABLE TRIGGER USER;
ALTER TABLE approvals_stage DISABLE TRIGGER USER;
CREATE TEMP TABLE made AS
  SELECT n, gen_random_uuid() AS run, gen_random_uuid() AS proposal,
  gen_random_uuid() AS request FROM generate_series(1, %(n)s) n;
INSERT INTO runs_run SELECT (jsonb_populate_record(r, jsonb_build_object('id', m.run, 'start_key', m.run,
  'customer', 'Customer ' || m.n))).* FROM made m, runs_run r WHERE r.id = %(run)s;
INSERT INTO runs_proposal SELECT (jsonb_populate_record(p, jsonb_build_object('id', m.proposal, 'run_id', m.run,
  'identity', m.proposal, 'amount_minor', 100000 + m.n))).* FROM made m, runs_proposal p WHERE p.id = %(proposal)s;
INSERT INTO approvals_approvalrequest SELECT (jsonb_populate_record(a, jsonb_build_object('id', m.request,
  'run_id', m.run, 'proposal_id', m.proposal,
  'amount_minor', 100000 + m.n, 'words', md5(m.n::text), 'respond_by', a.respond_by + m.n * interval '1 second',
  'created_at', a.created_at - m.n * interval '1 second',
  'group', CASE WHEN m.n %% 2 = 0 THEN a."group" ELSE 'others' END,
  'state', CASE WHEN m.n %% 10 = 0 THEN 'expired' ELSE 'open' END,
  'closed_at', CASE WHEN m.n %% 10 = 0 THEN a.created_at - m.n * interval '1 second' END))).*
  FROM made m, approvals_approvalrequest a WHERE a.id = %(request)s;
INSERT INTO approvals_stage SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(),
  'request_id', m.request, 'groups', CASE WHEN m.n %% 2 = 0 THEN to_jsonb(s.groups) ELSE '["others"]'::jsonb END))).*
  FROM made m, approvals_stage s WHERE s.request_id = %(request)s;
VACUUM ANALYZE;
"""


@pytest.fixture
def anna(db: str, owner: psycopg.Connection) -> User:
    anna = world.user("anna")
    asked = world.ask()
    given = {"n": MANY, "run": asked.run.pk, "proposal": asked.proposal.pk, "request": asked.request.pk}
    for statement in FILL.split(";\n"):
        if statement.strip():
            owner.execute(statement, given if "%(" in statement else None)
    return anna


def most_read(work: Callable[[], Any], *, of: str = "approvals_approvalrequest") -> int:
    """The most rows that a statement of it takes from one table or index, by the plans that the database chose. Looked
    at are the statements that name the table `of`."""
    with statements_sent() as sent:
        work()
    reads = [one for one in sent if one.lstrip().startswith(("SELECT", "WITH"))]
    asked = [sql for sql in reads if of in sql]
    assert asked
    plans = []
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) " + sql.replace("%", "%%"), [])
            plan = cursor.fetchone()[0]
        plans.append(_most(json.loads(plan) if isinstance(plan, str) else plan))
    return max(plans)


def _most(plan: Any) -> int:
    """The most rows that any scan of the plan looked at, kept or thrown away."""
    if isinstance(plan, list):
        return max((_most(one) for one in plan), default=0)
    if not isinstance(plan, dict):
        return 0
    here = 0
    if "Scan" in str(plan.get("Node Type", "")):
        thrown_away = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        looked = plan["Actual Rows"] + sum(plan.get(one, 0) for one in thrown_away)
        here = int(looked * plan["Actual Loops"])
    return max(here, _most(plan.get("Plans")), _most(plan.get("Plan")))


def test_no_more_is_read_than_is_shown_or_counted(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of the requests is counted at most, as with a hundred thousand of them."""
    monkeypatch.setattr(queries, "MOST_COUNTED", 99)
    monkeypatch.setattr(lists, "MOST_COUNTED", 99)
    for tab in ("mine", "decided", "all"):
        listing = lists.Listing(tab=tab)
        shown = lists.ids(user=anna, listing=listing, limit=70)
        middle = ApprovalRequest.objects.select_related("proposal").get(pk=shown[-1])
        looks: dict[str, Callable[[], Any]] = {
            "page": partial(lists.page, user=anna, listing=listing, limit=51),
            "after": partial(lists.page, user=anna, listing=listing, limit=51, after=middle.pk),
            "around": partial(lists.page, user=anna, listing=listing, limit=51, around=middle.pk),
            "ids": partial(lists.ids, user=anna, listing=listing, limit=100),
            "place": partial(lists.place, user=anna, listing=listing, request=middle),
            "next": partial(lists.to_decide_after, user=anna, listing=listing, request=middle),
            "badge": partial(queries.waiting_count, user=anna),
        }
        for name, look in looks.items():
            most = most_read(look)
            assert most < MANY // 8, f"{tab} {name}: {most} rows read"
        place = lists.place(user=anna, listing=listing, request=middle)
        assert (place.number, place.of, place.previous) == (70, lists.MOST_COUNTED + 1, shown[-2])
        assert lists.page(user=anna, listing=listing, limit=51, around=middle.pk)[lists.BEFORE].pk == middle.pk


def test_what_is_searched_and_ordered_is_found_by_index(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_COUNTED", 99)
    read: dict[str, int] = {}
    for wanted in (
        {"q": hashlib.md5(b"1177", usedforsecurity=False).hexdigest()[5:20]},
        {"q": "no such customer"},
        {"q": "$1,011.77"},
        {"order": "large", "currency": "USD"},
        {"least": "1011.00", "most": "1012.00", "currency": "USD"},
        {"rule": "service-credits/no-such"},
        {"tool": "no.such"},
        {"age": "hour"},  # those that have waited longest are due last, so the list begins with thousands of others
    ):
        for tab in ("mine", "all"):
            listing = lists.read({"tab": tab, **wanted}).listing
            assert listing.filters, wanted
            read[f"{tab} {wanted}"] = most_read(partial(lists.page, user=anna, listing=listing, limit=51))
    read["who started any"] = most_read(partial(inbox_filters.choices, lists.Listing()), of="runs_run")
    assert {name: most for name, most in read.items() if most >= MANY // 8} == {}


# all but some hundreds of those that nobody can answer are Anna's as well: waking each takes a while
MOST_ARE_HERS = """
UPDATE approvals_stage s SET groups = hers.groups
  FROM approvals_approvalrequest a, (SELECT groups FROM approvals_stage WHERE groups <> '["others"]' LIMIT 1) hers
 WHERE a.id = s.request_id AND a."group" = 'others' AND a.amount_minor % 16 <> 1
"""


def test_a_look_for_what_nobody_can_answer_reads_its_part_and_goes_round(anna: User, owner: psycopg.Connection) -> None:
    """Nobody is of the other group: those that only it is asked are found, each once; of Anna's there is none."""
    owner.execute(MOST_ARE_HERS)
    part, found = 1_000, 0
    for of in ("approvals_stage", "runs_run"):
        look = partial(looking.work_off, limit=1, looked_at=part)
        assert most_read(look, of=of) <= 2 * part, of
    Run.objects.update(state="awaiting_approval", wake_at=None)
    last, looks = None, 0
    while looks == 0 or last is not None:
        looked = looking.work_off(after=last, limit=part, looked_at=part)
        assert last is None or looked.last is None or looked.last > last
        last, looks, found = looked.last, looks + 1, found + looked.woken
    unanswered = Run.objects.filter(approval_requests__state="open", approval_requests__stages__groups=["others"])
    assert found == unanswered.count() == unanswered.filter(wake_at__isnull=False).count() > 500
    assert Run.objects.filter(wake_at__isnull=False).count() == found
    assert looks == MANY * 9 // 10 // part + 1
    few = looking.work_off(limit=7, looked_at=part)
    assert few.woken == 7 and few.last is not None
    assert looking.work_off(after=few.last, limit=1, looked_at=part).woken == 1
