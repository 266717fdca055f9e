"""Rights are those of the moment of the act, on every act; a claim of somebody who left keeps nobody out."""

import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from reconciliation.models import Case, WorkerProcess
from reconciliation.services import cases
from runs import clock, holding
from runs.models import Event, Principal, Run
from runs.services import operate, principals
from tests.approvals.world import somebody_waits
from tests.runpages import scenes, world

AGO = world.NOW - dt.timedelta(hours=5)
OTHERS = (Principal.Kind.INTEGRATION, Principal.Kind.AGENT, Principal.Kind.WORKFLOW, Principal.Kind.SERVICE)
ACTS: dict[str, Callable[[Run, Principal], Any]] = {
    "cancel": lambda run, who: operate.cancel(run_id=run.pk, principal=who, reason="x"),
    "pause": lambda run, who: operate.pause(run_id=run.pk, principal=who, reason="x"),
    "resume": lambda run, who: operate.resume(run_id=run.pk, principal=who, reason="x"),
    "claim": lambda run, who: operate.claim(run_id=run.pk, principal=who),
    "release": lambda run, who: operate.release(run_id=run.pk, principal=who),
    "gather_again": lambda run, who: operate.gather_again(run_id=run.pk, principal=who, reason="x"),
    "decide_again": lambda run, who: operate.decide_again(run_id=run.pk, principal=who, reason="x"),
    "close": lambda run, who: operate.close(
        run_id=run.pk, principal=who, as_state="failed", reason="x", what_stays=lambda run: ""
    ),
}


def of(user: User) -> Principal:
    return principals.of_user(user=user)


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def take_away(user: User) -> None:
    user.user_permissions.clear()


LOSSES = {"deactivated": deactivate, "the right is taken away": take_away}


def last(run: Run) -> Event:
    return Event.objects.filter(stream=f"run:{run.pk}").order_by("-seq")[0]


def as_it_stands(run: Run) -> tuple[Any, ...]:
    names = ("state", "owner_id", "paused_at", "cancel_requested_at", "outcome", "waits_for")
    return tuple(Run.objects.values_list(*names).get(pk=run.pk))


@pytest.mark.parametrize("act", ACTS)
def test_no_act_on_a_run_without_the_right_at_that_moment(db: str, act: str) -> None:
    run = scenes.needs_person(AGO).run
    machine = [principals.find_or_make(kind=kind, key=f"{kind}:odd", label="odd") for kind in OTHERS]
    people = [world.support(name) for name in ("priya", "quinn")]
    for lose, user in zip(LOSSES.values(), people, strict=True):
        lose(user)
    before = as_it_stands(run)
    for who in [*map(of, people), *machine]:
        assert ACTS[act](run, who).code == "no_right", who
        told = last(run)
        assert (told.kind, told.actor_id, told.data["act"], told.data["code"]) == (
            "act.refused", who.pk, act, "no_right",
        )  # fmt: skip
    assert as_it_stands(run) == before
    entitled = ACTS[act](run, of(world.support("olga"))).code
    assert entitled == ("not_paused" if act == "resume" else "ok")


def case_acts(case: Case, process: WorkerProcess) -> dict[str, Callable[[Principal], Any]]:
    number = case.number
    return {
        "case.claim": lambda who: cases.claim(case_number=number, principal=who),
        "case.release": lambda who: cases.release(case_number=number, principal=who),
        "probe": lambda who: cases.probe_now(operation_id=case.operation_id, principal=who),
        "case.settle": lambda who: cases.settle(
            case_number=number, principal=who, contract=None, verdict="happened", evidence="x", reference="CR-9"
        ),
        "process.gone": lambda who: cases.sender_gone(
            case_number=number, principal=who, process_id=process.pk, evidence="x"
        ),
    }


@pytest.mark.parametrize("loss", LOSSES)
def test_no_act_at_the_desk_without_the_right_at_that_moment(db: str, loss: str) -> None:
    teller, operation = scenes.in_a_case(AGO)
    case, tomas = operation.cases.get(), world.admin("tomas")
    assert cases.claim(case_number=case.number, principal=of(tomas)).ok
    sender = operation.attempts.select_related("sender").first().sender
    LOSSES[loss](tomas)
    state = operation.state
    for act, do in case_acts(case, sender).items():
        assert do(of(tomas)).code == "no_right", act
        assert (last(teller.run).kind, last(teller.run).data["act"]) == ("act.refused", act)
    operation.refresh_from_db()
    case.refresh_from_db()
    assert (operation.state, case.state, case.claimed_by_id) == (state, "claimed", of(tomas).pk)
    assert cases.claim(case_number=case.number, principal=of(world.admin("uma"))).ok, "nobody has it any more"


def test_an_act_waits_for_a_loss_under_way_and_then_sees_it(db: str, owner: psycopg.Connection) -> None:
    """The user's row is held: while it is being changed nobody acts on what it said before."""
    run, user = scenes.needs_person(AGO).run, world.support("priya")
    done: list[str] = []

    def work() -> None:
        done.append(operate.claim(run_id=run.pk, principal=of(user)).code)
        connections.close_all()

    other = threading.Thread(target=work)
    with owner.transaction():
        owner.execute("UPDATE auth_user SET is_active = false WHERE id = %s", [user.pk])
        other.start()
        assert somebody_waits() and done == []
    other.join(timeout=120)
    assert done == ["no_right"]


def test_the_page_says_so_with_403(db: str, signed_in: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    run = scenes.needs_person(AGO).run
    client = signed_in("runs.view_run", "runs.operate_run")
    user = world.person("priya")
    locked = operate._lock

    def lost_meanwhile(run_id: Any, **how: Any) -> Run:
        take_away(user)
        return locked(run_id, **how)

    monkeypatch.setattr(operate, "_lock", lost_meanwhile)
    for path in (f"/runs/{run.pk}/act/cancel", f"/needs-a-person/{run.pk}/claim", f"/needs-a-person/{run.pk}/go-on"):
        world.person("priya", "runs.view_run", "runs.operate_run")
        answer = client.post(path, {"as_user": str(user.pk), "reason": "because", "way": "failed"})
        assert answer.status_code == 403 and "Your rights have changed" in answer.content.decode(), path
    assert Event.objects.filter(kind="act.refused").count() == 3


@pytest.mark.parametrize("why", ["left", "right gone", "lapsed"])
@pytest.mark.parametrize("act", ["claim", "release", "gather_again"])
def test_a_claim_of_somebody_who_left_keeps_nobody_out(
    db: str, act: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, priya, tomas = scenes.needs_person(AGO).run, world.support("priya"), of(world.support("tomas"))
    assert operate.claim(run_id=run.pk, principal=of(priya)).ok
    refused = ACTS[act](run, tomas)
    assert (refused.code, refused.detail["by"]) == ("claimed_by_other", str(of(priya)))
    if why == "lapsed":
        moment = clock.now() + holding.CLAIM_LAPSES
        monkeypatch.setattr(holding.clock, "now", lambda: moment)
    else:
        (deactivate if why == "left" else take_away)(priya)
    assert ACTS[act](run, tomas).ok


def test_claiming_again_renews_it(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, priya, tomas = scenes.needs_person(AGO).run, of(world.support("priya")), of(world.support("tomas"))
    assert operate.claim(run_id=run.pk, principal=priya).ok
    nearly = clock.now() + holding.CLAIM_LAPSES - dt.timedelta(seconds=5)
    with world.at(nearly):
        assert operate.claim(run_id=run.pk, principal=priya).ok
    with world.at(nearly + dt.timedelta(minutes=1)):
        assert operate.claim(run_id=run.pk, principal=tomas).code == "claimed_by_other"
