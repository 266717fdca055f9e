"""The audit tab: every event with all that it carries, in words, beside the very text that its hash covers."""

import ast
import datetime as dt
import html
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.test import Client

from agentops.pages import detail, detail_words
from runs.models import Event, Run
from tests.runpages import scenes, world
from tests.statements_sent import statements_sent

pytestmark = pytest.mark.usefixtures("db")
REPO = Path(__file__).resolve().parents[2]
AGO = world.NOW - dt.timedelta(hours=5)
VIEW = "runs.view_run"
Maker = Callable[..., Client]
SCENES = sorted(
    name
    for name, scene in inspect.getmembers(scenes, inspect.isfunction)
    if not name.startswith("_") and next(iter(inspect.signature(scene).parameters), "") == "start"
)


def told(name: str) -> Run:
    """The run of a scene."""
    made = getattr(scenes, name)(AGO)
    teller = made[0] if isinstance(made, tuple) else made
    return Run.objects.get(pk=teller.run.pk)


def entries(client: Client, run: Run) -> dict[int, str]:
    """The HTML of each event on the run's audit tab, by number."""
    answer = client.get(f"/runs/{run.pk}/?tab=audit")
    assert answer.status_code == 200
    parts = re.split(r'<li id="a-(\d+)"', answer.content.decode().partition('<ol class="audit">')[2])
    return {int(number): part for number, part in zip(parts[1::2], parts[2::2], strict=True)}


def facts_of(entry: str) -> str:
    """Only the labels and values of an entry, as text: not the stored JSON below them."""
    shown = entry.partition('<dl class="pairs">')[2].rpartition('<details class="fold">')[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", shown)))


def keys(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every key in an event with its value, in what lies inside as well."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_every_event_of_every_scene_shows_all_that_it_carries(signed_in: Maker) -> None:
    client, seen = signed_in(VIEW), set()
    assert len(SCENES) >= 5
    for name in SCENES:
        run = told(name)
        shown = entries(client, run)
        for event in Event.objects.filter(stream=f"run:{run.pk}"):
            entry, facts = shown[event.seq], facts_of(shown[event.seq])
            seen.add(event.kind)
            assert event.kind in entry and f"<pre>{html.escape(event.canonical)}</pre>" in entry and event.hash in entry
            for key, value in keys(event.data):
                label = detail_words.label(kind=event.kind, key=key)
                if key == "currency" and "amount_minor" in event.data:
                    label = "Amount"
                assert f" {label or key} " in facts, (event.kind, key)
                if isinstance(value, str) and value and key not in ("currency", "at"):
                    assert value in facts or detail_words.value(kind=event.kind, key=key, stored=value) in facts, key
    assert len(seen) > 12


def test_every_key_that_the_product_writes_has_words() -> None:
    """A key that is written as a keyword of `record.append`, wherever that stands."""
    found = set()
    for app in ("agentops", "reconciliation", "approvals", "runs"):
        for path in (REPO / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "record.append":
                    found |= {one.arg for one in node.keywords if one.arg} - {"run", "kind", "actor", "saving"}
    assert len(found) > 50
    assert [key for key in sorted(found) if not detail_words.label(kind="", key=key)] == []


HOSTILE = {
    "<b>key</b>": "<script>alert(1)</script>",
    "text": '"><img src=x onerror=alert(1)>',
    "{{ run.pk }}": "{% csrf_token %}",
    "operation": "../../admin",
    "case": "RC-1/../../x",
    "request": "<i>",
    "at": "2026-99-99T99:99:99Z",
    "amount_minor": "<u>1</u>",
    "currency": "<s>",
    "pieces": [{"title": "<em>", "<em>": ["<em>", {"<em>": None}]}, "plain", [], {}, 7, True],
    "source": {"why": "‮txet"},
}


def test_hostile_texts_are_shown_as_text(signed_in: Maker) -> None:
    run = world.new_run(created_at=AGO)
    world.tell(run, "run.note<b>", **HOSTILE)
    entry = entries(signed_in(VIEW), run)[run.event_seq]
    for tag in ("<b>", "<script", "<img", "<i>", "<u>", "<s>", "<em>"):
        assert tag not in entry, tag
    facts = facts_of(entry)
    for key, _ in keys({name: value for name, value in HOSTILE.items() if name != "currency"}):
        assert html.escape(detail_words.label(kind="", key=key) or key) in html.escape(facts), key
    assert "{% csrf_token %}" in facts and "../../admin" in facts and 'href="/operations' not in entry
    assert "<u>1</u> <s> minor units" in facts and "7" in facts and "yes" in facts
    assert signed_in(VIEW).get(f"/runs/{run.pk}/?event={run.event_seq}").status_code == 200


def test_what_lies_deep_is_one_line_and_still_there(signed_in: Maker) -> None:
    run, deep = world.new_run(created_at=AGO), {"bottom": "found"}
    for level in range(120):
        deep = {f"level{level}": deep}
    world.tell(run, "run.note", deep=deep)
    facts = facts_of(entries(signed_in(VIEW), run)[run.event_seq])
    assert '"bottom": "found"' in facts and "level119" in facts


def test_values_are_written_as_on_the_other_tabs(signed_in: Maker) -> None:
    run = world.new_run(created_at=AGO)
    other, digest = "01a22bf5-7ce1-702e-963c-f2b306d0d344", "ab" * 32
    world.tell(
        run, "request.opened", amount_minor="120000", currency="USD", tool="billing.create_credit", case="RC-12",
        operation=other, request=other, run_id=other, respond_by="2026-03-04T17:00:00.5+00:00", seconds=192,
        binding_digest=digest, conclusive=False, comment="", rules=[], terms={}, votes_for=0,
    )  # fmt: skip
    world.tell(run, "operation.state", source="sending", target="unknown", why="no answer")
    shown = entries(signed_in(VIEW), run)
    entry, facts = shown[run.event_seq - 1], facts_of(shown[run.event_seq - 1])
    assert '<data class="money" value="1200.00">$1,200.00 <small>USD</small></data>' in entry
    assert "Tool Create credit billing.create_credit" in facts and "For 3 min 12 s" in facts
    for page in (f"/operations/{other}/", f"/approvals/{other}/", f"/runs/{other}/", "/cases/12/"):
        assert f'href="{page}"' in entry, page
    assert 'datetime="2026-03-04T' in entry and f"<code>{digest}</code>" in entry
    assert "Conclusive no" in facts and "Comment –" in facts and "Rules none" in facts and "Terms none" in facts
    assert "Votes for it 0" in facts
    assert "To Not confirmed unknown Why no answer" in facts_of(shown[run.event_seq])


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        ({"amount_minor": None, "currency": ""}, ["Amount"]),
        ({"amount_minor": 5, "currency": "USD"}, ["Amount"]),
        ({"currency": "USD"}, ["Currency"]),
        ({"amount_minor": 5}, ["Amount"]),
        ({"amount_minor": None, "currency": "USD"}, ["Amount", "Currency"]),
        ({"amount_minor": 5, "currency": ""}, ["Amount", "Currency"]),
    ],
)
def test_an_amount_and_its_currency_are_one_only_where_both_are_told(data: dict[str, Any], labels: list[str]) -> None:
    assert sorted(one.label for one in detail.facts(kind="", data=data)) == labels


def test_the_number_of_queries_is_the_same_for_many_events(signed_in: Maker) -> None:
    run, client = told("completed"), signed_in(VIEW)

    def queries() -> int:
        with statements_sent() as sent:
            entries(client, run)
        return len(sent)

    queries()  # what is read once for a session
    few = queries()
    for number in range(60):
        world.tell(run, "proposal.made", number=number, tool="billing.create_credit", amount_minor=1, currency="USD")
    assert queries() == few


def test_a_row_that_says_otherwise_than_its_hash_is_told(signed_in: Maker, owner: psycopg.Connection) -> None:
    run, client = told("unknown"), signed_in(VIEW)
    assert "says otherwise" not in "".join(entries(client, run).values())
    number = Event.objects.get(stream=f"run:{run.pk}", kind="proposal.made").seq
    owner.execute("UPDATE runs_event SET data = data || '{\"amount_minor\": 7}' WHERE seq = %s", [number])
    owner.execute("UPDATE runs_event SET canonical = 'nothing' WHERE seq = 2")
    shown = entries(client, run)
    assert "The row itself says otherwise (facts)" in shown[number] and "$1,200.00" in shown[number]
    assert "says otherwise (number, time, kind, person, facts)" in shown[2] and "<pre>nothing</pre>" in shown[2]
    assert "says otherwise" not in shown[3]
