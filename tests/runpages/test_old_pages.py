"""A page that was opened a while ago does no more than it showed."""

import re

from runs.models import Batch, BatchItem
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
