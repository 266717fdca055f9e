"""A page that was opened a while ago does no more than it showed."""

import re

from agentops import acts
from runs.models import Batch, BatchItem
from runs.services import principals
from tests.runpages import world
from tests.runpages.test_many import OPERATE, VIEW, Maker, html, me, several

_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


def test_the_button_acts_on_no_more_runs_than_it_named(db: str, signed_in: Maker) -> None:
    seen, client = several(2), signed_in(VIEW, OPERATE)
    page = html(client.get("/runs/many/", {"act": "cancel", "all": "1", "q": "customer"}))
    assert "Cancel 2 runs</button>" in page
    for number in range(3):  # they come while the page is open
        world.new_run(title=f"Credit for customer {number} again", subject=f"CS-88{number:02d}")
    client.post("/runs/many/do", me(**{**dict(_HIDDEN.findall(page)), "reason": "x"}))
    assert Batch.objects.get().total == 2
    assert set(BatchItem.objects.values_list("run_id", flat=True)) == {run.pk for run in seen}


def test_where_more_match_by_now_it_asks_again(db: str, signed_in: Maker) -> None:
    client = signed_in(VIEW, OPERATE)
    several(3)
    page = html(client.get("/runs/many/", {"act": "cancel", "all": "1"}))
    fields = dict(_HIDDEN.findall(page))
    for old in ({**fields, "number": "2"}, {"act": "cancel", "all": "1"}, {**fields, "asked_at": "x", "number": "x"}):
        answer = client.post("/runs/many/do", me(**{**old, "reason": "x"}))
        assert answer.status_code == 409 and "More runs match by now" in html(answer)
        assert "Cancel 3 runs</button>" in html(answer)
    assert not Batch.objects.exists()


def test_resuming_ends_no_pause_that_the_page_never_showed(db: str, signed_in: Maker) -> None:
    [run], client, system = several(1), signed_in(VIEW, OPERATE), principals.system()
    assert acts.perform(act="pause", run_id=run.pk, principal=system, reason="lunch").ok
    page = html(client.get(f"/runs/{run.pk}/"))
    fields = dict(_HIDDEN.findall(page[page.index("act/resume") :]))
    assert acts.perform(act="resume", run_id=run.pk, principal=system, reason="back").ok
    assert acts.perform(act="pause", run_id=run.pk, principal=system, reason="nobody touches this").ok
    body = {**fields, **me(), "reason": "lunch is over"}
    answer = html(client.post(f"/runs/{run.pk}/act/resume", body, follow=True))
    run.refresh_from_db()
    assert run.paused_at is not None and "paused again after this page was opened" in answer
    fields = dict(_HIDDEN.findall(answer[answer.index("act/resume") :]))
    client.post(f"/runs/{run.pk}/act/resume", {**fields, **me(), "reason": "it was nothing"})
    run.refresh_from_db()
    assert run.paused_at is None
