"""Trying a draft on what there has been: counts, money, totals as they stood, who would be asked, and never a write."""

from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.template.loader import render_to_string
from django.test import Client

from agentops import policy_figures, policy_trial
from agentops.policy_trial import Trial
from approvals.models import Allowance, Policy
from reconciliation.models import Reservation
from runs.money import Money
from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")


def document(**rule_changes: dict[str, Any]) -> dict[str, Any]:
    """The policy in force with some rules changed, by id."""
    rules = [{**rule, **rule_changes.get(rule["id"].replace("-", "_"), {})} for rule in world.DOCUMENT["rules"]]
    return {**world.DOCUMENT, "rules": rules}


def trial(changed: dict[str, Any] | None = None, *, last: int = 100, seconds: float = 120) -> Trial:
    policy = Policy.objects.select_related("active").get(slug="service-credits")
    given = changed if changed is not None else world.DOCUMENT
    return policy_trial.try_document(policy=policy, document=given, tools=[world.TOOL], last=last, seconds=seconds)


def counts(found: Trial) -> dict[str, tuple[int, int, int]]:
    lines = policy_figures.lines(trial=found)
    return {line.effect: (line.happened.count, line.in_force.count, line.would.count) for line in lines}


def test_what_would_go_another_way_is_counted_with_its_money_and_listed() -> None:
    maya = world.person("Maya Lindgren", "manager")
    big, huge = world.ask(), world.ask(world.Story(customer="Bluebird Bikes", amount=Money(250_000, "USD")))
    world.decide(big, maya)
    higher = document(
        small={"when": "currency == 'USD' && amount_minor <= 150000"},
        above_1000={"when": "currency == 'USD' && amount_minor > 150000"},
    )
    found = trial(higher)
    assert counts(found) == {"allow": (0, 0, 1), "ask": (2, 2, 1), "deny": (0, 0, 0)}
    line = policy_figures.lines(trial=found)[0]
    assert line.would.sums() == [("USD", 120_000)] and line.in_force.sums() == []
    assert [one.request_id for one in found.tried if one.changes] == [big.pk]
    work = policy_figures.groups(trial=found)[0]
    assert (work.group, work.voters, work.in_force, work.would, work.answers) == ("manager", 1, 2, 1, 1)
    assert work.measured == 1 and work.seconds is not None and work.seconds >= 0
    assert not [one for one in trial().tried if one.changes]
    assert huge.pk in {one.request_id for one in found.tried}


def test_without_a_decision_there_is_nothing_to_measure() -> None:
    world.person("Maya Lindgren", "manager")
    world.ask()
    work = policy_figures.groups(trial=trial())[0]
    assert (work.seconds, work.total, work.measured) == (None, None, 0)


def test_another_quorum_or_group_is_another_way_and_other_words_are_not() -> None:
    world.ask()
    ask = next(rule["ask"] for rule in world.DOCUMENT["rules"] if "ask" in rule)
    for changes, another in (
        ({"text": "Worded anew"}, False),
        ({"ask": {**ask, "quorum": 2}}, True),
        ({"ask": {**ask, "group": "finance"}}, True),
        ({"ask": {**ask, "confirm": "retype"}}, True),
    ):
        found = trial(document(above_1000=changes))
        assert [one.changes for one in found.tried] == [another]


def test_what_makes_the_way_another_is_said() -> None:
    """Who is asked may be the same, and what is asked of them not."""
    for name in ("Maya Lindgren", "Jonas Weber"):
        world.person(name, "manager")
    world.ask()
    ask = {"respond_within_minutes": 240, "valid_for_minutes": 60}
    stage = {"name": "Managers", "groups": ["manager"], "quorum": 1}
    near = {"within_limit": True, "team": "emea"}
    for changed, said in (
        ({"group": "manager", "quorum": 1, "confirm": "reauthenticate"},
         ["each approval takes the amount typed again and a fresh login"]),
        ({"stages": [{**stage, "person": near}]}, ["each within their own limit, of the team emea"]),
        ({"stages": [{**stage, "reject_at": 2}]}, ["2 who say no end it"]),
        ({"stages": [stage, {**stage, "name": "Others"}], "order": "sequential"}, ["one after the other"]),
    ):  # fmt: skip
        (one,) = trial(document(above_1000={"ask": {**ask, **changed}})).tried
        assert one.changes and [*one.would.more] == said and not one.in_force.more and not one.happened.more
        shown = render_to_string("approvals/_outcome.html", {"outcome": one.would})
        assert all(f"<b>{words}</b>" in shown for words in said)


def test_running_totals_count_as_they_stood_when_it_was_proposed() -> None:
    """The first credit was under way when the second was proposed, and not yet when it was proposed itself."""
    maya = world.person("Maya Lindgren", "manager")
    first = world.ask()
    operation = world.operation(world.decide(first, maya), to="succeeded")
    second = world.ask()
    tight = {
        **world.DOCUMENT,
        "totals": [{**world.DOCUMENT["totals"][0], "limits": {"USD": "200000"}}],
    }
    key = "service-credits/month/ACC-1093/2026-10/USD"
    Allowance.objects.create(key=key, label="x", currency="USD", limit_minor=2_000_000, settled_minor=120_000)
    Reservation.objects.create(operation=operation, allowance_id=key, amount_minor=120_000, state="settled")
    found = {one.request_id: one for one in trial(tight).tried}
    assert found[first.pk].would.effect == "ask"
    assert found[second.pk].would.effect == "deny" and "would have been exceeded" in found[second.pk].would.text
    assert found[second.pk].in_force.effect == "ask"
    row = Allowance.objects.get()
    assert (row.settled_minor, row.reserved_minor, row.limit_minor) == (120_000, 0, 2_000_000), "only read"


def test_a_total_that_is_new_is_named() -> None:
    world.ask()
    new = {
        **world.DOCUMENT["totals"][0],
        "id": "incident",
        "text": "Credits of an incident",
        "key": ["incident", "currency"],
    }
    assert trial({**world.DOCUMENT, "totals": [new]}).new_totals == ["Credits of an incident"]
    assert trial().new_totals == []


def test_it_is_bounded_by_number_and_by_time_and_says_so() -> None:
    for _ in range(3):
        world.ask()
    assert (trial(last=2).looked, trial(last=2).wanted, trial(last=2).complete) == (2, 2, True)
    cut = trial(seconds=0)
    assert (cut.looked, cut.wanted, cut.complete, cut.tried) == (0, 3, False, [])


def test_what_cannot_be_judged_any_more_is_counted_and_left_out(owner: psycopg.Connection) -> None:
    world.ask()
    gone = world.ask()
    owner.execute("UPDATE runs_run SET workflow = 'forgotten' WHERE id = %s", [gone.run_id])
    found = trial()
    assert (found.looked, found.unreadable, len(found.tried)) == (2, 1, 1)


def test_it_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    world.ask()

    def writes(*_: Any, **__: Any) -> Any:
        Allowance.objects.create(key="k", label="x", currency="USD", limit_minor=1)

    monkeypatch.setattr(policy_trial, "_happened", writes)
    with pytest.raises(DatabaseError, match="read-only"):
        trial()
    assert not Allowance.objects.exists()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("off",), "the next transaction may write again"


def test_the_page_says_what_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentops.pages import policy_review
    from approvals.services import drafts
    from runs.services import principals

    tomas = world.person("Tomas Reyes", "admin")
    world.ask()
    assert drafts.start(slug="service-credits", principal=principals.of_user(user=tomas)).ok
    browser = Client()
    browser.force_login(tomas)
    page = browser.get("/policies/service-credits/draft/try?last=50").text
    assert "The last 1 proposal," in page and "no decision yet to measure" in page and "1 → <b>1</b>" in page
    monkeypatch.setattr(policy_review, "TRY_SECONDS", 0.0)
    assert "Looked at 0 of 1" in browser.get("/policies/service-credits/draft/try?last=nonsense").text


def test_the_time_in_all_is_the_median_times_the_requests() -> None:
    work = policy_figures.GroupWork(
        group="g", voters=1, happened=0, in_force=0, would=4, answers=4, seconds=1800.0, measured=9
    )
    assert work.total == 7200.0
