"""Proposing a reversal on the pages: what it says, who may, what both runs show of it."""

from django.test import Client

from reconciliation.models import Reversal
from tests.undoing.conftest import Undoing


def client(undo: Undoing, who: str) -> Client:
    made = Client()
    made.force_login(undo.world.people[who])
    return made


def test_from_the_run_to_compensated(undo: Undoing) -> None:
    first, credit = undo.credited()
    priya, maya = client(undo, "priya"), client(undo, "maya")
    me = undo.world.people["priya"].pk
    to = f"/operations/{credit.pk}/reverse"
    operations = f"/runs/{first.pk}/?tab=operations"
    page = priya.get(operations).content.decode()
    assert to in page and "never by taking one back" in page
    assert to not in maya.get(operations).content.decode() and maya.get(to).status_code == 404

    page = priya.get(to).content.decode()
    assert "You proposed" not in page and "you cannot approve it" in page and str(credit.external_reference) in page
    assert priya.post(to, {"reason": " ", "as_user": me}).status_code == 422
    assert not Reversal.objects.exists()
    assert priya.post(to, {"reason": "the outage was another one", "as_user": me}).status_code == 302
    again = priya.post(to, {"reason": "the outage was another one", "as_user": me})
    assert again.status_code == 409 and "Nothing was proposed a second time" in again.content.decode()

    run = undo.world.work(undo.run_of(credit))
    page = priya.get(operations).content.decode()
    assert "Waiting for approval" in page and f"/runs/{run.pk}/" in page and to not in page
    asked = maya.get(f"/approvals/{undo.world.request(run).pk}/").content.decode()
    assert "A voided credit note stays void" in asked and "$420.00" in asked
    assert undo.world.vote(run).code == "approved"
    undo.world.work(run)
    undo.relay()
    page = priya.get(operations).content.decode()
    assert "Reversed since" in page and to not in page
    assert f"/runs/{first.pk}/" in priya.get(f"/runs/{run.pk}/").content.decode()
    for tab in ("trace", "file"):
        assert "eversal of" in priya.get(f"/runs/{first.pk}/?tab={tab}").content.decode()


def test_cancelling_tells_what_will_be_proposed(undo: Undoing) -> None:
    run = undo.world.work(undo.world.start("CS-8812"))
    priya = client(undo, "priya")
    assert "Will be proposed" not in priya.get(f"/runs/{run.pk}/?act=cancel").content.decode()
    undo.world.fault("5xx_without_effect", "helpdesk.tickets.update", times=None)
    undo.world.vote(run)
    run = undo.world.work(run, until=lambda one: undo.world.credit(one).state == "succeeded")
    page = priya.get(f"/runs/{run.pk}/?act=cancel").content.decode()
    assert "Will be proposed to be undone" in page and str(undo.world.credit(run).external_reference) in page
