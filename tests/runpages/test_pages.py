"""The pages of runs: who may see and do what, hostile texts, what is typed stays, lists and their empty states."""

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client

from runs.models import Event, Run
from tests.runpages import scenes, world

VIEW, OPERATE = "runs.view_run", "runs.operate_run"
HOSTILE = '</td><script>alert(1)</script>\nAmount: $1.00 USD "onload=x'
AGO = world.NOW - dt.timedelta(hours=5)
Maker = Callable[..., Client]


def html(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


def test_without_login_or_right_nothing_is_shown(db: str, signed_in: Maker) -> None:
    run = world.new_run()
    paths = ["/runs/", f"/runs/{run.pk}/", f"/runs/{run.pk}/live", f"/runs/{run.pk}/record", "/needs-a-person/",
             f"/needs-a-person/{run.pk}/", "/cases/"]  # fmt: skip
    nobody, stranger = Client(), signed_in(name="olga")
    for path in paths:
        assert nobody.get(path)["Location"].startswith("/accounts/login/?next="), path
        refused = stranger.get(path)
        assert refused.status_code == 403 and run.title not in html(refused), path
        assert nobody.get(path, headers={"HX-Request": "true"}).status_code == 401, path


def test_who_may_only_look_may_not_act(db: str, signed_in: Maker) -> None:
    run = scenes.needs_person(AGO).run
    looker = signed_in(VIEW)
    before = Event.objects.count()
    for path in (f"/runs/{run.pk}/act/cancel", f"/needs-a-person/{run.pk}/claim", f"/needs-a-person/{run.pk}/go-on"):
        as_user = {"as_user": str(world.person("priya").pk), "reason": "because", "way": "failed"}
        assert looker.post(path, as_user).status_code == 403, path
        assert looker.get(path).status_code == 405, path
    assert Event.objects.count() == before
    page = html(looker.get(f"/runs/{run.pk}/"))
    assert "Cancel…" not in page and "Take it over" not in html(looker.get(f"/needs-a-person/{run.pk}/"))


def test_the_frame_says_what_waits_where_also_around_a_run(db: str, signed_in: Maker) -> None:
    run = scenes.needs_person(AGO).run
    page = html(signed_in(VIEW).get(f"/runs/{run.pk}/"))
    assert 'id="count-person" aria-label="1 run"' in page and 'id="count-trace"' not in page
    assert 'id="count-operations"' in page


def test_the_trace_says_in_which_zone_its_times_are(db: str, signed_in: Maker) -> None:
    client, run = signed_in(VIEW), scenes.needs_person(AGO).run
    client.cookies["tz"] = "Asia/Tokyo"
    assert ">Times in JST<" in html(client.get(f"/runs/{run.pk}/?tab=trace"))


def test_hostile_texts_are_text_and_the_amount_stays(db: str, signed_in: Maker) -> None:
    teller, _ = scenes.in_a_case(AGO, title=HOSTILE[:300], subject=HOSTILE[:200], customer=HOSTILE[:300])
    run = teller.run
    world.tell(run, "run.note", text=HOSTILE * 900)
    world.tell(run, "never.heard.of.it", **{'<b onclick="x">': HOSTILE})
    world.evidence(run, "ticket", HOSTILE, HOSTILE * 900, reading=2)
    client = signed_in(VIEW, OPERATE, "reconciliation.view_case")
    pages = [f"/runs/{run.pk}/?tab={tab}" for tab in ("trace", "evidence", "approvals", "operations", "audit", "file")]
    case = run.operations.get().cases.get()
    pages += ["/runs/", f"/cases/{case.number}/", "/cases/", f"/runs/{run.pk}/events/{run.event_seq}/"]
    for path in pages:
        page = html(client.get(path))
        assert "<script>alert" not in page and '<b onclick="x">' not in page, path
        assert "style=" not in page.replace("font-style=", ""), path
    assert "$1,200.00" in html(client.get(f"/runs/{run.pk}/?tab=operations"))
    assert "$1,200.00" in html(client.get(f"/cases/{case.number}/"))
    whole = html(client.get(f"/runs/{run.pk}/events/{run.event_seq - 1}/"))
    assert whole.count("Amount: $1.00 USD") >= 900, "shown in full on demand"


def test_the_list_finds_by_each_kind_of_word(db: str, signed_in: Maker) -> None:
    teller, operation = scenes.completed(AGO, title="Credit for Acme", subject="CS-1", customer="Acme Corp")
    other = world.new_run(title="Credit for Blue Kite", subject="CS-2", customer="Blue Kite 100% Studios")
    case = world.open_case(operation, "why")
    client = signed_in(VIEW)
    for words in ("acme corp", "Credit for Acme", "CS-1", str(teller.run.pk), operation.identity, "CR-5520", case.label,
                  case.label.lower()):  # fmt: skip
        page = html(client.get("/runs/", {"q": words}))
        assert f"/runs/{teller.run.pk}/" in page, words
        assert f"/runs/{other.pk}/" not in page, words
    assert f"/runs/{other.pk}/" in html(client.get("/runs/", {"q": "100%"}))
    for words in ("nothing like it", "%", "\x00", "RC-99999999999999999999", "x" * 5000, "' OR 1=1 --"):
        answer = client.get("/runs/", {"q": words})
        assert answer.status_code == 200, words
    assert "No run matches" in html(client.get("/runs/", {"q": "nothing like it"}))


def test_filters_counters_and_pages(db: str, signed_in: Maker) -> None:
    client = signed_in(VIEW)
    assert "No run has been started yet" in html(client.get("/runs/"))
    runs = [world.new_run(title=f"Run number {n}") for n in range(53)]
    world.move(runs[0], world.S.GATHERING)
    page = html(client.get("/runs/"))
    assert page.count('class="row-link"') == 50 and "Older" in page
    assert html(client.get("/runs/?page=2")).count('class="row-link"') == 3
    assert "None right now" in html(client.get("/runs/?state=unknown"))
    for odd in ("0", "-3", "x", "99999999999", "²"):
        assert client.get("/runs/", {"page": odd, "state": odd}).status_code == 200
    fragment = html(client.get("/runs/", headers={"HX-Request": "true"}))
    assert fragment.lstrip().startswith('<div id="run-list"')


def test_the_list_costs_the_same_number_of_queries(
    db: str, signed_in: Maker, django_assert_max_num_queries: object
) -> None:
    client = signed_in(VIEW)
    for n in range(40):
        world.new_run(title=f"Run {n}")
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        client.get("/runs/")


def test_where_a_run_stands_is_said_in_words(db: str, signed_in: Maker) -> None:
    client = signed_in(VIEW)
    unsure, _ = scenes.unknown(AGO)
    page = html(client.get(f"/runs/{unsure.run.pk}/"))
    assert "Not confirmed" in page and "it may have happened; nothing is sent again until that is known" in page
    assert "Failed" not in page
    waiting, _, _ = scenes.asked(AGO)
    page = html(client.get(f"/runs/{waiting.run.pk}/"))
    assert "An answer from support managers" in page and "no operation has been started" in page
    done, _ = scenes.completed(AGO)
    page = html(client.get(f"/runs/{done.run.pk}/"))
    assert "CR-5520" in page and "Cancel…" not in page


def test_a_run_of_thousands_of_events_stays_a_page(db: str, signed_in: Maker) -> None:
    run = world.new_run()
    for n in range(700):
        world.tell(run, "run.note", text=f"note {n}")
    client = signed_in(VIEW)
    page = html(client.get(f"/runs/{run.pk}/"))
    assert page.count("<li id=") == 300 and "?before=400" in page
    earlier = html(client.get(f"/runs/{run.pk}/?before=400"))
    assert earlier.count("<li id=") == 300 and "ws-connect" not in earlier and "?before=100" in earlier
    for odd in ("x", "-1", "0", "9" * 30):
        assert client.get(f"/runs/{run.pk}/", {"before": odd, "event": odd, "tab": odd}).status_code == 200


def test_the_fallback_brings_what_the_socket_would(db: str, signed_in: Maker) -> None:
    teller, _ = scenes.unknown(AGO)
    client = signed_in(VIEW)
    part = html(client.get(f"/runs/{teller.run.pk}/live?after=20"))
    assert 'id="e-21"' in part and 'id="e-20"' not in part and f'data-seq="{teller.run.event_seq}"' in part
    assert client.get(f"/runs/{teller.run.pk}/live?after={teller.run.event_seq}").status_code == 204
    assert client.get("/runs/00000000-0000-0000-0000-000000000000/live").status_code == 404


def test_cancel_keeps_the_reason_and_asks_for_one(db: str, signed_in: Maker) -> None:
    run = scenes.asked(AGO)[0].run
    client = signed_in(VIEW, OPERATE)
    me = {"as_user": str(world.person("priya").pk)}
    empty = client.post(f"/runs/{run.pk}/act/cancel", {**me, "reason": "   "})
    assert empty.status_code == 422 and "Say why: it stays in the run" in html(empty)
    other = client.post(f"/runs/{run.pk}/act/cancel", {"as_user": "0", "reason": "customer withdrew"})
    assert other.status_code == 403
    run.refresh_from_db()
    assert run.cancel_requested_at is None
    done = client.post(f"/runs/{run.pk}/act/cancel", {**me, "reason": "customer withdrew"}, follow=True)
    assert "What is in flight is settled first" in html(done)
    again = client.post(f"/runs/{run.pk}/act/cancel", {**me, "reason": "once more"}, follow=True)
    assert "has asked for that already" in html(again)
    run.refresh_from_db()
    assert run.cancel_reason == "customer withdrew"
    assert Event.objects.filter(kind="run.cancel_requested").count() == 1


def test_a_tampered_record_is_said(db: str, owner: object, signed_in: Maker) -> None:
    teller, _ = scenes.unknown(AGO)
    client = signed_in(VIEW)
    assert "Chain verified" in html(client.get(f"/runs/{teller.run.pk}/?tab=audit"))
    owner.execute("UPDATE runs_event SET canonical = replace(canonical, '120000', '100') WHERE seq = 6")  # type: ignore[attr-defined]
    assert "The chain does not hold at event 6" in html(client.get(f"/runs/{teller.run.pk}/?tab=audit"))
    assert len(html(client.get(f"/runs/{teller.run.pk}/record")).splitlines()) == teller.run.event_seq


@pytest.mark.parametrize("way", ["gather", "decide", "completed", "failed"])
def test_a_person_takes_a_run_over_and_sends_it_on(db: str, signed_in: Maker, way: str) -> None:
    run = scenes.needs_person(AGO).run
    client, other = signed_in(VIEW, OPERATE), signed_in(VIEW, OPERATE, name="noor")
    me, them = ({"as_user": str(world.person(name).pk)} for name in ("priya", "noor"))
    assert "Take it over" in html(client.get(f"/needs-a-person/{run.pk}/"))
    client.post(f"/needs-a-person/{run.pk}/claim", me)
    assert "Priya Example has this run" in html(other.post(f"/needs-a-person/{run.pk}/claim", them, follow=True))
    refused = other.post(f"/needs-a-person/{run.pk}/go-on", {**them, "way": way, "reason": "typed with care"})
    assert refused.status_code == 409 and "typed with care" in html(refused)
    bad = client.post(f"/needs-a-person/{run.pk}/go-on", {**me, "way": "pay twice", "reason": "typed with care"})
    assert bad.status_code == 422 and "typed with care" in html(bad)
    done = client.post(f"/needs-a-person/{run.pk}/go-on", {**me, "way": way, "reason": "spoke to the customer"})
    assert done.status_code == 302
    run = Run.objects.get(pk=run.pk)
    assert run.state == {"gather": "gathering", "decide": "deciding"}.get(way, way)
    late = client.post(f"/needs-a-person/{run.pk}/go-on", {**me, "way": way, "reason": "twice"}, follow=True)
    assert late.status_code == 409 and Event.objects.filter(kind="run.state", data__why="twice").count() == 0
