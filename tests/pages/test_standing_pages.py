"""The pages of standing approvals without a browser: who sees what, what is refused, and the words."""

import copy
import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from agentops.pages import exposure
from approvals import standing
from approvals.evaluation import Verdict, evaluate
from approvals.models import Allowance, Decision, PolicyVersion, StandingApproval
from approvals.services import standing_use, tallying
from reconciliation.models import Operation, Reservation
from runs import clock
from runs.models import Run
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")


def document() -> dict[str, Any]:
    made = copy.deepcopy(world.DOCUMENT)
    made["rules"][2]["ask"]["standing"] = True
    together = {
        "id": "together",
        "text": "Sums above $1,000 in 30 days need a support manager",
        "when": "currency == 'USD'",
        "window": {"by": "account", "hours": 720, "above": {"USD": "100000"}},
    }
    made["rules"].append({**made["rules"][2], **together})
    made["standing"] = {
        "group": "manager", "most": {"USD": "500000"}, "alone_up_to": {"USD": "200000"}, "longest_days": 92,
    }  # fmt: skip
    return made


@pytest.fixture
def people(db: str) -> dict[str, User]:
    made = {
        "maya": world.person("Maya Lindgren", "manager"),
        "jonas": world.person("Jonas Weber", "manager"),
        "priya": world.person("Priya Nair", "support"),
    }
    world.policy(document=document())
    return made


def signed_in(user: User) -> Client:
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


def body(user: User, **more: str) -> dict[str, str]:
    ends = (clock.now() + dt.timedelta(days=30)).date().isoformat()
    return {
        "as_user": str(user.pk), "tool": world.TOOL, "account": "ACC-1093", "ticket": "", "incident": "",
        "reason_is": "", "currency": "USD", "each": "1500.00", "total": "4000.00", "count": "3", "period": "month",
        "starts": "", "ends": ends, "reason": "Agreed in the quarterly review", **more,
    }  # fmt: skip


def text(answer: Any) -> str:
    return answer.content.decode()


def _verdict() -> Verdict:
    known = {
        "account": "ACC-1093", "account_standing": "good", "currency": "USD", "amount_minor": 120_000,
        "month": "2026-10",
    }  # fmt: skip
    return evaluate(document=PolicyVersion.objects.get().rules, variables=known, counted=lambda need: (0, ()))


def ask_about_a_second() -> tuple[str, str]:
    """Two requests for one customer, each counted before it was judged: the second's page and the first's run."""
    asked = []
    for customer in ("Acme Corp", "Acme Corp"):
        request = world.ask(world.Story(customer=customer))
        known = exposure.variables(request)
        with transaction.atomic():
            tallying.tally(proposal=request.proposal, version=request.policy_version, variables=known)
        asked.append(request)
    return f"/approvals/{asked[1].pk}/", f"/runs/{asked[0].run_id}/"


def covered(one: StandingApproval) -> StandingApproval | None:
    """What would answer for one more of the same."""
    run = world.run_of(world.Story())
    proposal = world.propose(run, world.Story())
    return standing.find(run=run, proposal=proposal, verdict=_verdict(), variables={"account": "ACC-1093"})


def use(one: StandingApproval) -> Operation:
    """What the engine does under it, in rows: a decision and an operation that holds its share."""

    run = world.run_of(world.Story())
    proposal = world.propose(run, world.Story())
    version = PolicyVersion.objects.get()
    verdict = _verdict()
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        decision = standing_use.decide(
            run=run, proposal=proposal, version=version, verdict=verdict, standing=one, binding_digest="0" * 64,
            valid_for=dt.timedelta(hours=1), actor=run.agent,
        )  # fmt: skip
        operation = Operation.objects.create(
            run=run, proposal=proposal, decision=decision, tool=proposal.tool, contract_version="1", system="billing",
            identity=proposal.identity, business_key=proposal.business_key, effect=proposal.effect,
            amount_minor=120_000, currency="USD",
        )  # fmt: skip
        need = standing.need(standing=one, amount_minor=120_000)
        total, _ = Allowance.objects.get_or_create(
            key=need.key,
            defaults={
                "label": need.label,
                "currency": "USD",
                "limit_minor": one.total_minor,
                "count_limit": one.count,
            },
        )
        total.reserved_minor, total.reserved_count = total.reserved_minor + 120_000, total.reserved_count + 1
        total.save(update_fields=["reserved_minor", "reserved_count"])
        Reservation.objects.create(operation=operation, allowance=total, amount_minor=120_000)
    return operation


def test_written_by_one_put_in_force_by_another_used_and_revoked(people: dict[str, User]) -> None:
    maya, jonas = signed_in(people["maya"]), signed_in(people["jonas"])
    assert "Nothing is approved beforehand" in text(maya.get("/standing/"))
    page = text(maya.get("/standing/new"))
    assert "$5,000.00" in page and "members of manager" in page
    page = text(maya.post("/standing/new", body(people["maya"]), follow=True))
    assert "without asking anybody. Up to $1,500.00 USD each" in page and "Put it in force" not in page
    assert "somebody else of manager puts it in force" in page
    one = StandingApproval.objects.get()
    at = f"/standing/{one.pk}"
    again = text(maya.post(f"{at}/grant", {"as_user": str(people["maya"].pk), "seen": "x"}, follow=True))
    assert "What you had before you is not what is stored" in again
    page = text(jonas.get(f"{at}/"))
    seen = page.partition('name="seen" value="')[2].partition('"')[0]
    again = text(maya.post(f"{at}/grant", {"as_user": str(people["maya"].pk), "seen": seen}, follow=True))
    assert "so somebody else puts it in force" in again
    page = text(jonas.post(f"{at}/grant", {"as_user": str(people["jonas"].pk), "seen": seen}, follow=True))
    assert "In force from now on." in page and "Maya Lindgren" in page and "Jonas Weber" in page
    operation = use(StandingApproval.objects.get())
    page = text(jonas.get(f"{at}/"))
    assert operation.run.title in page and "$2,800.00 USD and 2 actions left" in page and "not confirmed" in page
    assert "$2,800.00 USD and 2 actions left" in text(jonas.get("/standing/"))
    run_page = text(jonas.get(f"/runs/{operation.run_id}/?tab=approvals"))
    assert "Approved beforehand" in run_page and "Maya Lindgren and Jonas Weber" in run_page
    assert "Allowed by policy alone" not in run_page and "Nobody was asked" not in run_page
    empty = maya.post(f"{at}/revoke", {"as_user": str(people["maya"].pk), "reason": " "})
    assert empty.status_code == 422 and "data-open-now" in text(empty)
    page = text(
        maya.post(f"{at}/revoke", {"as_user": str(people["maya"].pk), "reason": "agreed otherwise"}, follow=True)
    )
    assert "Nothing more is sent under it" in page and "agreed otherwise" in page
    late = text(maya.post(f"{at}/revoke", {"as_user": str(people["maya"].pk), "reason": "x"}, follow=True))
    assert "it is revoked" in late
    assert Decision.objects.get().standing_id == one.pk


def test_the_decision_page_says_what_was_counted_with_it(people: dict[str, User]) -> None:
    second, first = ask_about_a_second()
    page = text(signed_in(people["maya"]).get(second))
    assert "$2,400.00 USD for account ACC-1093 in 30 days: this and 1 other" in page
    assert f'href="{first}"' in page and "Proposed" in page


def test_what_is_typed_wrong_is_named_by_its_field_and_kept(people: dict[str, User]) -> None:
    maya = signed_in(people["maya"])
    for more, words in (
        ({"account": ""}, "is never for everybody"),
        ({"each": "1,500"}, "This is not an amount"),
        ({"each": "-5"}, "This is not an amount"),
        ({"total": "5000.01"}, "at most $5,000.00"),
        ({"currency": "EUR"}, "nothing in EUR"),
        ({"currency": "XXQ"}, "not a currency in use"),
        ({"count": "0"}, "Raise “Actions”: 1 is the least"),
        ({"ends": "2020-01-01"}, "still to come"),
        ({"ends": "9999-12-31"}, "Choose a day between 1990 and 2099."),  # there is no day after it
        ({"starts": "0001-01-01"}, "Choose a day between 1990 and 2099."),
        ({"ends": "soon"}, "Write “Until the end of” as a date"),
        ({"reason": " "}, "Say why: whoever puts it in force"),
        ({"tool": "no.such"}, "Choose “Tool” from what is offered"),
        ({"account": "a\x00b"}, "Write “Account” anew"),
    ):
        answer = maya.post("/standing/new", body(people["maya"], **more))
        assert answer.status_code == 422 and words in text(answer), (more, words)
        assert "Agreed in the quarterly review" in text(answer) or "reason" in more
    assert not StandingApproval.objects.exists()
    assert maya.post("/standing/new", body(people["jonas"])).status_code == 403


def test_who_may_look_write_grant_and_stop(people: dict[str, User]) -> None:
    maya, priya = signed_in(people["maya"]), signed_in(people["priya"])
    maya.post("/standing/new", body(people["maya"], total="2000.00"))
    one = StandingApproval.objects.get()
    page = text(maya.get(f"/standing/{one.pk}/"))
    assert "Put it in force" in page and "Withdraw" in page and "Decline" not in page
    assert priya.get("/standing/new").status_code == 403
    page = text(priya.get(f"/standing/{one.pk}/"))
    assert "Put it in force" not in page and "It waits for a member of manager" in page
    seen = text(maya.get(f"/standing/{one.pk}/")).partition('name="seen" value="')[2].partition('"')[0]
    mine = {"as_user": str(people["priya"].pk), "seen": seen}
    assert priya.post(f"/standing/{one.pk}/grant", mine).status_code == 403
    assert maya.post(f"/standing/{one.pk}/grant", {"as_user": str(people["maya"].pk), "seen": seen}).status_code == 302
    assert "Revoke" in text(priya.get(f"/standing/{one.pk}/")), "who may freeze may stop this as well"
    assert priya.post(f"/standing/{one.pk}/revoke", mine | {"reason": "looks wrong"}).status_code == 302
    assert StandingApproval.objects.get().state == "revoked"
    assert Client().get("/standing/").status_code == 302
    assert maya.post(f"/standing/{one.pk}/no-such", mine).status_code == 404
