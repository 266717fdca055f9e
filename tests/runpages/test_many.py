"""One act on many runs: the question, the results, and that each run is done once, whoever dies or comes twice."""

import datetime as dt
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentops import acts, batches
from runs.models import Batch, BatchItem, Event, Run
from runs.services import principals
from tests.approvals.world import at_once
from tests.runpages import scenes, world

VIEW, OPERATE = "runs.view_run", "runs.operate_run"
AGO = world.NOW - dt.timedelta(hours=5)
Maker = Callable[..., Client]


def html(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


def me(**more: object) -> dict[str, object]:
    return {"as_user": str(world.person("priya").pk), **more}


def several(number: int = 5) -> list[Run]:
    return [world.new_run(title=f"Credit for customer {n}", subject=f"CS-77{n:02d}") for n in range(number)]


def start(runs: list[Run], *, act: str = "pause", user: User | None = None) -> Batch:
    principal = principals.of_user(user=user or world.support())
    chosen = Run.objects.filter(pk__in=[run.pk for run in runs])
    found = batches.start(act=act, runs=chosen, chosen="ticked", principal=principal, reason="the prices are wrong")
    assert found.batch is not None
    return found.batch


def results(batch: Batch) -> list[str]:
    return list(BatchItem.objects.filter(batch=batch).order_by("id").values_list("code", flat=True))


def test_the_question_says_how_many_and_what_follows_and_changes_nothing(db: str, signed_in: Maker) -> None:
    runs = [*several(), scenes.completed(AGO)[0].run]
    client = signed_in(VIEW, OPERATE)
    page = html(client.get("/runs/many/", {"act": "cancel", "run": [str(run.pk) for run in runs]}))
    assert "Cancel 5 runs?" in page and "What is in flight is settled first" in page and "Credit for customer 4" in page
    page = html(client.get("/runs/many/", {"act": "pause", "all": "1", "q": "customer 3"}))
    assert "Pause 1 run?" in page and "all that match “customer 3”" in page
    assert "No live run is chosen" in html(client.get("/runs/many/", {"act": "pause", "run": ["x", "0" * 32]}))
    assert client.get("/runs/many/", {"act": "approve", "all": "1"}).status_code == 404
    assert not Batch.objects.exists()


def test_who_may_not_and_who_says_no_reason(db: str, signed_in: Maker) -> None:
    runs = several(2)
    body = {"act": "pause", "run": [str(run.pk) for run in runs]}
    assert signed_in(VIEW, name="vera").get("/runs/many/", {"act": "pause"}).status_code == 403
    assert signed_in(VIEW, name="vera").post("/runs/many/do", me(**body, reason="x")).status_code == 403
    client = signed_in(VIEW, OPERATE)
    assert client.post("/runs/many/do", {**body, "as_user": "0", "reason": "x"}).status_code == 403
    empty = client.post("/runs/many/do", me(**body, reason="  "))
    assert empty.status_code == 422 and "Say why" in html(empty) and "Pause 2 runs?" in html(empty)
    assert not Batch.objects.exists() and not Event.objects.filter(kind="run.paused").exists()


def test_it_is_written_down_first_and_each_run_has_its_own_result(db: str, signed_in: Maker) -> None:
    runs, client = several(3), signed_in(VIEW, OPERATE)
    paused = acts.perform(act="pause", run_id=runs[0].pk, principal=principals.system(), reason="before")
    assert paused.ok
    body = me(act="pause", run=[str(run.pk) for run in runs], reason="the prices are wrong")
    answer = client.post("/runs/many/do", body)
    batch = Batch.objects.get()
    assert answer.headers["Location"] == f"/runs/many/{batch.pk}/"
    page = html(client.get(f"/runs/many/{batch.pk}/", headers={"HX-Request": "true"}))
    assert page.count("not yet") == 3 and "every 2s" in page and Run.objects.filter(paused_at=None).count() == 2
    while batches.work_off():
        pass
    page = html(client.get(f"/runs/many/{batch.pk}/"))
    assert "has asked for that already" in page and page.index("has asked for that") < page.index("Done</span>")
    assert "every 2s" not in page and "the prices are wrong" in page and "Priya Example" in page
    assert sorted(results(batch)) == ["already_requested", "ok", "ok"]
    assert Run.objects.filter(paused_at=None).count() == 0
    assert "Pause 3 runs" in html(client.get("/runs/many/"))
    assert client.get("/runs/many/00000000-0000-0000-0000-000000000000/").status_code == 404


def test_each_act_is_offered_where_it_makes_sense_and_done_with_its_reason(db: str, signed_in: Maker) -> None:
    asked, unknown, client = scenes.asked(AGO)[0].run, scenes.unknown(AGO)[0].run, signed_in(VIEW, OPERATE)
    page = html(client.get(f"/runs/{asked.pk}/"))
    assert "Hand to a person…" in page and "Try again now…" not in page
    assert "then it expires and a person gets the run" in page
    page = html(client.get(f"/runs/{unknown.pk}/"))
    assert "Try again now…" in page and "the other side is asked now. This sends nothing again" in page
    done = client.post(f"/runs/{unknown.pk}/act/again", me(reason="the customer waits"), follow=True)
    assert "It tries again now." in html(done) and "Asked to look it up now" in html(done)
    refused = client.post(f"/runs/{unknown.pk}/act/to-person", me(reason="x"), follow=True)
    assert "Something it sent to billing is not settled yet" in html(refused)
    done = html(client.post(f"/runs/{asked.pk}/act/to-person", me(reason="look at it"), follow=True))
    assert "Handed over." in done and "Hand to a person…" not in done and "An operator handed it over" in done
    assert client.post(f"/runs/{asked.pk}/act/approve", me(reason="x")).status_code == 404


def test_a_process_that_dies_in_the_middle_leaves_the_rest_to_the_next(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, performed = start(several(6)), []
    real = acts.perform

    def dies_at_the_fourth(**kwargs: object) -> object:
        performed.append(kwargs["run_id"])
        if len(performed) == 4:
            keep = kwargs.pop("keep")
            kwargs["keep"] = lambda result: (keep(result), _die())  # type: ignore[operator]
        return real(**kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(acts, "perform", dies_at_the_fourth)
        with pytest.raises(KeyboardInterrupt):
            batches.work_off(seconds=60)
    assert results(batch) == ["ok"] * 3 + [""] * 3 and Run.objects.filter(paused_at=None).count() == 3
    assert batches.work_off(seconds=60) == 3
    batch.refresh_from_db()
    assert results(batch) == ["ok"] * 6 and batch.finished_at is not None
    assert Event.objects.filter(kind="run.paused").count() == 6 and batches.work_off() == 0


def _die() -> None:
    """In the transaction of the act, as the process's end would: nothing of it is committed."""
    raise KeyboardInterrupt


def test_two_at_once_do_each_run_once(db: str) -> None:
    batch = start(several(30), act="again", user=world.support())
    Run.objects.update(wake_at=None, waits_for="a test")
    counted = at_once(*[lambda: batches.work_off(seconds=60)] * 3)
    assert not [one for one in counted if isinstance(one, BaseException)], counted
    assert results(batch) == ["ok"] * 30
    assert Event.objects.filter(kind="run.try_again").count() == 30


def test_rights_are_those_of_the_moment_of_each_act(db: str) -> None:
    user = world.support("quinn")
    batch = start(several(3), user=user)
    assert batches.work_off(seconds=0) == 1
    User.objects.filter(pk=user.pk).update(is_active=False)
    batches.work_off(seconds=60)
    assert results(batch) == ["ok", "no_right", "no_right"]
    assert Event.objects.filter(kind="act.refused").count() == 2


def test_one_run_that_breaks_off_holds_up_no_other(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = several(3)
    batch = start(runs)
    real = acts.INNER["pause"]

    def fails(run: Run, *more: object) -> object:
        if run.pk == runs[1].pk:
            raise ZeroDivisionError
        return real(run, *more)  # type: ignore[arg-type]

    monkeypatch.setitem(acts.INNER, "pause", fails)
    batches.work_off(seconds=60)
    assert results(batch) == ["ok", "broke_off", "ok"]


def test_what_cannot_be_started(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, someone = several(3), principals.of_user(user=world.support())
    chosen = Run.objects.filter(pk__in=[run.pk for run in runs])
    nobody = principals.of_user(user=world.person("vera", VIEW))
    asked = {"act": "pause", "chosen": "x", "principal": someone, "reason": "x"}
    assert batches.start(**{**asked, "runs": Run.objects.none()}).code == "none_chosen"
    assert batches.start(**{**asked, "runs": chosen, "reason": " "}).code == "reason_needed"
    assert batches.start(**{**asked, "runs": chosen, "principal": nobody}).code == "no_right"
    monkeypatch.setattr(batches, "MOST", 2)
    assert batches.start(**{**asked, "runs": chosen}).code == "too_many"
    assert not Batch.objects.exists()
    with pytest.raises(KeyError):
        batches.start(**{**asked, "runs": chosen, "act": "approve"})
