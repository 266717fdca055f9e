"""The page of switches: freezing and lifting with a reason, who may, and the band on every page meanwhile."""

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client

from approvals.models import Freeze
from approvals.services import freezing
from runs.models import Event, Principal
from runs.services import principals, tokens
from tests.runpages import scenes, world

RIGHTS = ("runs.view_run", "runs.operate_run", "approvals.freeze")
AGO = world.NOW - dt.timedelta(hours=5)
CREDIT = "tool:billing.create_credit"
Maker = Callable[..., Client]


def html(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


def me(**more: str) -> dict[str, str]:
    return {"as_user": str(world.person("priya").pk), **more}


def someone() -> Principal:
    return principals.of_user(user=world.person("priya", *RIGHTS))


def test_nothing_frozen_then_frozen_then_lifted(db: str, signed_in: Maker) -> None:
    run = scenes.asked(AGO, capabilities=["billing.create_credit"])[0].run
    scenes.unknown(AGO, capabilities=["billing.create_credit"])
    client = signed_in(*RIGHTS)
    page = html(client.get("/switches/"))
    assert "Nothing is frozen" in page and "frozen-bar" not in page and "Tool billing.create_credit 2" in page
    done = html(client.post("/switches/freeze", me(scope=CREDIT, reason="booked twice"), follow=True))
    assert "Frozen. Nothing new is sent from now on. 1 operation is in flight and will be settled." in done
    for address in ("/switches/", "/runs/", f"/runs/{run.pk}/", "/overview/"):
        page = html(client.get(address))
        assert "Tool billing.create_credit is frozen" in page and "booked twice" in page and "Priya Example" in page
    again = html(client.post("/switches/freeze", me(scope=CREDIT, reason="again"), follow=True))
    assert "It is frozen already, by Priya Example: booked twice." in again
    frozen = Freeze.objects.get()
    done = html(client.post(f"/switches/{frozen.pk}/lift", me(reason="mended"), follow=True))
    assert "Lifted." in done and "frozen-bar" not in done and "lifted: mended" in done
    late = html(client.post(f"/switches/{frozen.pk}/lift", me(reason="mended"), follow=True))
    assert "Priya Example has lifted it already" in late
    told = Event.objects.filter(stream="system:freezes").order_by("seq").values_list("kind", flat=True)
    assert list(told) == ["freeze.begun", "freeze.lifted"]


def test_a_reason_and_a_scope_are_asked_for_and_what_was_typed_stays(db: str, signed_in: Maker) -> None:
    client = signed_in(*RIGHTS)
    for body, words in (
        (me(scope=CREDIT, reason=" "), "Say why"),
        (me(scope="tool:no.such", reason="typed with care"), "Choose “What” from what is offered"),
        (me(reason="typed with care"), "Choose what to freeze"),
    ):
        answer = client.post("/switches/freeze", body)
        assert answer.status_code == 422 and words in html(answer) and "data-open-now" in html(answer)
        assert body["reason"].strip() in html(answer)
    frozen = freezing.freeze(scope="all", principal=someone(), reason="x").freeze
    assert frozen is not None
    empty = client.post(f"/switches/{frozen.pk}/lift", me(reason=""))
    assert empty.status_code == 422 and "Say why" in html(empty) and "data-open-now" in html(empty)
    assert client.post("/switches/freeze", {"as_user": "0", "scope": CREDIT, "reason": "x"}).status_code == 403
    assert Freeze.objects.count() == 1


def test_who_may_look_and_who_may_freeze(db: str, signed_in: Maker) -> None:
    looks, manager = signed_in("runs.view_run", name="vera"), signed_in("approvals.vote", name="maya")
    page = html(looks.get("/switches/"))
    assert "Freeze…" not in page and "Nothing is frozen" in page
    assert manager.get("/switches/").status_code == 403
    assert looks.post("/switches/freeze", {"scope": "all", "reason": "x"}).status_code == 403
    assert 'href="/switches/"' in html(signed_in(*RIGHTS).get("/overview/"))
    assert 'href="/switches/"' not in html(looks.get("/overview/"))


def test_rights_are_those_of_the_moment(db: str) -> None:
    user = world.person("quinn", *RIGHTS)
    principal = principals.of_user(user=user)
    user.user_permissions.clear()
    assert freezing.freeze(scope="all", principal=principal, reason="x").code == "no_right"
    kinds = (Principal.Kind.AGENT, Principal.Kind.INTEGRATION, Principal.Kind.WORKFLOW, Principal.Kind.SERVICE)
    for kind in kinds:
        other = principals.find_or_make(kind=kind, key=f"{kind}:odd", label="odd")
        assert freezing.freeze(scope="all", principal=other, reason="x").code == "no_right"
    assert not Freeze.objects.exists()
    assert Event.objects.filter(stream="system:freezes", kind="freeze.refused").count() == 1 + len(kinds)


def test_an_integration_lifts_only_what_it_froze(db: str) -> None:
    tokens.issue(name="monitor", label="Monitor", may_operate=True)
    monitor = Principal.objects.get(key="integration:monitor")
    theirs = freezing.freeze(scope="all", principal=someone(), reason="x").freeze
    own = freezing.freeze(scope=CREDIT, principal=monitor, reason="errors").freeze
    assert theirs is not None and own is not None
    refused = freezing.lift(freeze_id=theirs.pk, principal=monitor, reason="x")
    assert (refused.code, refused.detail) == ("not_yours", {"by": "Priya Example"})
    assert freezing.lift(freeze_id=own.pk, principal=monitor, reason="x").ok
    assert freezing.lift(freeze_id=theirs.pk, principal=someone(), reason="x").ok


@pytest.mark.parametrize("reason", ["<script>alert(1)</script>", "‮gnihtyreve", "a" * 2000])
def test_hostile_words_stay_words(db: str, signed_in: Maker, reason: str) -> None:
    assert freezing.freeze(scope="all", principal=someone(), reason=reason).ok
    page = html(signed_in(*RIGHTS).get("/switches/"))
    assert "<script>alert" not in page and "Everything is frozen" in page
