"""A policy's next version takes two people: what each may do, each refusal, and what the database itself holds."""

import threading
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection, connections

from approvals import draft_words
from approvals.models import DraftRevision, Policy, PolicyDraft, PolicyTool, PolicyVersion
from approvals.services import drafts, policies, publishing
from approvals.services.drafts import DraftResult, Written
from runs import record
from runs.models import Event, Principal
from runs.services import principals
from tests import published
from tests.approvals import world

pytestmark = pytest.mark.usefixtures("db")
SLUG = "service-credits"


@pytest.fixture
def first(db: str) -> PolicyVersion:
    world.user("anna")
    return world.policy()


@pytest.fixture
def writer(db: str) -> Principal:
    return published.editor("writer", "edit_policy")


@pytest.fixture
def second(db: str) -> Principal:
    return published.editor("second", "publish_policy")


def changed(text: str = "Two managers decide", **ask: Any) -> dict[str, Any]:
    document = world.document()
    document["rules"][0] |= {"text": text, "ask": {**document["rules"][0]["ask"], **ask}}
    return document


def written(document: Any = None, *, note: str = "The auditors ask for it", tools: list[str] | None = None) -> Written:
    return Written(document=document or changed(), tools=tools or [world.TOOL], note=note)


def begin(writer: Principal) -> PolicyDraft:
    draft = drafts.start(slug=SLUG, principal=writer).draft
    assert draft is not None
    return draft


def asked(writer: Principal, **given: Any) -> PolicyDraft:
    """A draft that waits for a second person."""
    draft = begin(writer)
    assert drafts.save(draft_id=draft.pk, principal=writer, revision=1, written=written(**given)).code == "ok"
    assert drafts.ask(draft_id=draft.pk, principal=writer, revision=2).code == "ok"
    draft.refresh_from_db()
    return draft


def publish(draft: PolicyDraft, by: Principal, seen: str = "") -> DraftResult:
    return publishing.publish(draft_id=draft.pk, principal=by, seen=seen or published.seen(draft.pk))


def refused(code: str, result: DraftResult) -> DraftResult:
    """Nothing was published, the refusal has its own code, its own sentence, and stands in the record."""
    assert result.code == code and not result.ok
    assert PolicyVersion.objects.count() == 1
    told = Event.objects.filter(stream="system:policies", kind="policy.refused").order_by("-seq")[0]
    assert told.data["code"] == code
    sentence = draft_words.sentence(code=code, detail=result.detail)
    assert code not in sentence and "{" not in sentence
    return result


def test_one_writes_another_publishes_and_all_of_it_is_recorded(
    first: PolicyVersion, writer: Principal, second: Principal
) -> None:
    draft = asked(writer)
    assert policies.governing(tool=world.TOOL) == first, "nothing is in force before"
    version = publish(draft, second).version
    assert version is not None and policies.governing(tool=world.TOOL) == version
    assert (version.number, version.published_by, version.note) == (2, second, "The auditors ask for it")
    assert version.rules["rules"][0]["text"] == "Two managers decide" and version.draft == draft
    draft.refresh_from_db()
    assert (draft.state, draft.closed_by) == ("published", second)
    kinds = list(Event.objects.filter(stream="system:policies").order_by("seq").values_list("kind", flat=True))
    assert kinds == [
        "policy.published",
        "policy.draft_started",
        "policy.draft_saved",
        "policy.publication_asked",
        "policy.published",
    ]
    told = Event.objects.filter(kind="policy.published").latest("seq").data
    assert (told["written_by"], told["asked_by"]) == ([writer.key], writer.key)
    assert record.verify(stream="system:policies") is None


def test_whoever_wrote_any_of_it_or_asked_for_it_does_not_publish_it(first: PolicyVersion) -> None:
    ann, ben, cem, dan = (published.editor(name) for name in ("ann", "ben", "cem", "dan"))
    draft = begin(ann)
    assert drafts.save(draft_id=draft.pk, principal=ben, revision=1, written=written()).ok
    assert drafts.ask(draft_id=draft.pk, principal=cem, revision=2).ok
    for had_a_part in (ann, ben, cem):
        refused("own_draft", publish(draft, had_a_part))
    assert publish(draft, dan).ok


def test_a_machine_neither_writes_nor_publishes(first: PolicyVersion, writer: Principal) -> None:
    for machine in (principals.system(), world.machine(Principal.Kind.AGENT, "agent:x")):
        refused("not_a_person", drafts.start(slug=SLUG, principal=machine))
    draft = asked(writer)
    refused("not_a_person", publish(draft, principals.system()))


def test_rights_are_those_of_the_moment(first: PolicyVersion, writer: Principal, second: Principal) -> None:
    refused("no_right", drafts.start(slug=SLUG, principal=second))
    draft = asked(writer)
    refused("no_right", publish(draft, published.editor("third", "edit_policy")))
    refused("no_right", drafts.send_back(draft_id=draft.pk, principal=writer, revision=2, reason="no"))
    User.objects.filter(pk=second.user_id).update(is_active=False)
    refused("no_right", publish(draft, second))
    User.objects.get(pk=writer.user_id).user_permissions.clear()
    for act in (drafts.ask, drafts.discard):
        refused("no_right", act(draft_id=draft.pk, principal=writer, revision=2))


def test_there_is_one_draft_at_a_time_and_nobody_overwrites_another(first: PolicyVersion, writer: Principal) -> None:
    draft, other = begin(writer), published.editor("other")
    assert refused("draft_exists", drafts.start(slug=SLUG, principal=other)).detail["by"] == "Writer"
    assert drafts.save(draft_id=draft.pk, principal=other, revision=1, written=written()).ok
    late = drafts.save(draft_id=draft.pk, principal=writer, revision=1, written=written(changed("Mine")))
    assert refused("changed", late).detail == {"by": "Other", "revision": 2}
    assert drafts.save(draft_id=draft.pk, principal=writer, revision=2, written=written()).code == "same"
    assert DraftRevision.objects.filter(draft=draft).count() == 2


def test_what_is_not_ready_is_not_asked_for(first: PolicyVersion, writer: Principal, second: Principal) -> None:
    draft = begin(writer)
    refused("nothing_changed", drafts.ask(draft_id=draft.pk, principal=writer, revision=1))
    drafts.save(draft_id=draft.pk, principal=writer, revision=1, written=written(note=" "))
    refused("note_needed", drafts.ask(draft_id=draft.pk, principal=writer, revision=2))
    refused("not_asked", publish(draft, second))
    drafts.save(draft_id=draft.pk, principal=writer, revision=2, written=written(changed(group="finance")))
    found = refused("invalid", drafts.ask(draft_id=draft.pk, principal=writer, revision=3))
    assert "every request of this rule would wait for nobody" in str(found.problems[0])
    drafts.save(draft_id=draft.pk, principal=writer, revision=3, written=written())
    assert drafts.ask(draft_id=draft.pk, principal=writer, revision=4).ok
    refused("asked_already", drafts.ask(draft_id=draft.pk, principal=writer, revision=4))


def test_what_cannot_be_read_is_not_saved_and_named(first: PolicyVersion, writer: Principal) -> None:
    draft = begin(writer)
    rule = world.document()["rules"][0]
    cases: list[tuple[Written, str]] = [
        (written({"rules": [{**rule, "when": "amount > 5"}]}), "is not a variable"),
        (written({"rules": [{**rule, "colour": "red"}]}), "is not a field of policies"),
        (written({"rules": [{**rule, "when": "tool == 'billing.refundd'"}]}), "does not govern"),
        (written({"rules": [{**rule, "when": "ticket == '\x00'"}]}), "nobody can read"),
        (written(tools=[world.TOOL, "billing.unheard_of"]), "is not a tool"),
        (written(tools=["helpdesk.update_ticket"]), "leaves out billing.create_credit"),
        (written({**changed(), "policy": "another"}), "write service-credits"),
        (written([1, 2]), "valid dictionary"),
        (written(note="x" * 5000), "up to 4000"),
    ]
    for content, said in cases:
        result = drafts.save(draft_id=draft.pk, principal=writer, revision=1, written=content)
        assert said in "; ".join(str(one) for one in refused("invalid", result).problems)
    assert DraftRevision.objects.count() == 1


def test_groups_and_tools_are_looked_at_again_when_it_is_published(
    first: PolicyVersion, writer: Principal, second: Principal
) -> None:
    draft = asked(writer, tools=[world.TOOL, "helpdesk.draft_reply"])
    User.objects.get(username="anna").groups.clear()
    found = refused("invalid", publish(draft, second))
    assert "in which nobody may vote: every request of this rule would wait for nobody" in str(found.problems[0])
    User.objects.get(username="anna").groups.add(world.voters("manager"))
    taken = Policy.objects.create(slug="other", name="Other")
    PolicyTool.objects.create(tool="helpdesk.draft_reply", policy=taken)
    assert "which Other governs" in str(refused("invalid", publish(draft, second)).problems[0])


def test_what_was_seen_is_what_is_published(first: PolicyVersion, writer: Principal, second: Principal) -> None:
    draft = asked(writer)
    before = published.seen(draft.pk)
    assert drafts.save(draft_id=draft.pk, principal=writer, revision=2, written=written(changed("Nobody decides"))).ok
    draft.refresh_from_db()
    assert (draft.state, draft.asked_by) == ("writing", None), "saving takes the question back"
    refused("not_asked", publish(draft, second, before))
    assert drafts.ask(draft_id=draft.pk, principal=writer, revision=3).ok
    told = refused("draft_changed", publish(draft, second, before))
    assert told.detail == {"by": "Writer", "revision": 3}
    assert publish(draft, second).ok


def test_the_version_in_force_moved_on(
    first: PolicyVersion, writer: Principal, second: Principal, owner: psycopg.Connection
) -> None:
    """No way of the product leads there while a draft is open; should anything else, nothing is published over it."""
    draft = asked(writer)
    seen = published.seen(draft.pk)
    owner.execute("ALTER TABLE approvals_policyversion DISABLE TRIGGER two_people")
    owner.execute(
        "INSERT INTO approvals_policyversion (id, policy_id, number, rules, digest, note, published_by_id)"
        " SELECT gen_random_uuid(), policy_id, 2, rules, digest, '', published_by_id FROM approvals_policyversion"
    )
    owner.execute("UPDATE approvals_policy SET active_id = (SELECT id FROM approvals_policyversion WHERE number = 2)")
    owner.execute("ALTER TABLE approvals_policyversion ENABLE TRIGGER two_people")
    result = publish(draft, second, seen)
    assert (result.code, result.detail) == ("in_force_changed", {"version": "Service credits v2"})
    assert PolicyVersion.objects.count() == 2


def test_sent_back_with_a_reason_and_ended_for_good(first: PolicyVersion, writer: Principal, second: Principal) -> None:
    draft = asked(writer)
    for reason, code in ((" ", "reason_needed"), ("x" * 2001, "reason_too_long")):
        refused(code, drafts.send_back(draft_id=draft.pk, principal=second, revision=2, reason=reason))
    assert drafts.send_back(draft_id=draft.pk, principal=second, revision=2, reason="Too strict").ok
    draft.refresh_from_db()
    assert (draft.state, draft.reason, draft.asked_by) == ("writing", "Too strict", None)
    refused("not_asked", drafts.send_back(draft_id=draft.pk, principal=second, revision=2, reason="Again"))
    assert drafts.discard(draft_id=draft.pk, principal=writer, revision=2).ok
    refused("closed", drafts.save(draft_id=draft.pk, principal=writer, revision=2, written=written()))
    told = refused("closed", publish(draft, second))
    assert "Writer discarded it on" in draft_words.sentence(code="closed", detail=told.detail)
    assert begin(writer).pk != draft.pk, "the next may begin"


def test_going_back_is_a_new_version_published_by_two(
    first: PolicyVersion, writer: Principal, second: Principal
) -> None:
    assert publish(asked(writer), second).ok
    for number, code in ((9, "no_such_version"), (2, "in_force_already")):
        assert drafts.start(slug=SLUG, principal=writer, back_to=number).code == code
    draft = drafts.start(slug=SLUG, principal=writer, back_to=1).draft
    assert draft is not None and drafts.newest(draft=draft).note == "Back to version 1."
    assert drafts.ask(draft_id=draft.pk, principal=writer, revision=1).ok
    version = publish(draft, second).version
    assert version is not None and (version.number, version.digest) == (3, first.digest)


# ---- by the command, and against the database itself


def test_a_further_version_by_one_alone_is_refused_and_recorded(first: PolicyVersion) -> None:
    given: dict[str, Any] = {
        "slug": SLUG, "name": "Service credits", "tools": [world.TOOL], "document": changed(), "note": "",
        "publisher": principals.system(),
    }  # fmt: skip
    same = {**given, "document": world.document()}
    for other in (given, {**same, "name": "Renamed"}, {**same, "tools": [world.TOOL, "helpdesk.draft_reply"]}):
        with pytest.raises(policies.SecondPersonNeeded, match="every further version takes two people"):
            policies.publish(**other)
    assert PolicyVersion.objects.count() == 1 and PolicyTool.objects.count() == 1
    assert Policy.objects.get().name == "Service credits"
    assert Event.objects.filter(kind="policy.refused", data__code="second_person_needed").count() == 3
    assert policies.publish(**same) == first


def sql(statement: str) -> str:
    """What the database says to it; nothing when it lets it pass."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is compared
        return str(error)
    return ""


def test_the_database_itself_wants_two_people(first: PolicyVersion, writer: Principal) -> None:
    insert = (
        "INSERT INTO approvals_policyversion (id, policy_id, number, rules, digest, note, published_by_id, draft_id)"
        " SELECT gen_random_uuid(), d.policy_id, {number}, r.document, r.digest, '', '{by}', {draft}"
        " FROM approvals_policydraft d JOIN approvals_draftrevision r ON r.draft_id = d.id AND r.number = {revision}"
    )
    draft, other = asked(writer), published.editor("other")
    given = {"number": 2, "by": other.pk, "draft": "d.id", "revision": 2}
    for changes, said in (
        ({"draft": "NULL"}, "comes from a draft"),
        ({"draft": "NULL", "number": 1}, "comes from a draft"),
        ({"draft": "NULL", "number": 0}, "comes from a draft"),
        ({"by": writer.pk}, "a second person"),
        ({"by": principals.system().pk}, "a second person"),
        ({"revision": 1}, "not what was asked"),
    ):
        assert said in sql(insert.format(**{**given, **changes})), changes
    assert PolicyVersion.objects.count() == 1
    drafts.discard(draft_id=draft.pk, principal=writer, revision=2)
    assert "not what was asked" in sql(insert.format(**given))
    assert "cannot go from" in sql("UPDATE approvals_policydraft SET state = 'asked'") or "is closed" in sql(
        "UPDATE approvals_policydraft SET state = 'asked'"
    )
    for statement in (
        "UPDATE approvals_draftrevision SET note = 'x'",
        "DELETE FROM approvals_draftrevision",
        "DELETE FROM approvals_policydraft",
        "UPDATE approvals_policydraft SET based_on_id = based_on_id",
    ):
        assert "permission denied" in sql(statement)


def test_an_older_version_never_comes_back_by_itself(
    first: PolicyVersion, writer: Principal, second: Principal
) -> None:
    assert publish(asked(writer), second).ok
    assert "only a newer version" in sql(f"UPDATE approvals_policy SET active_id = '{first.pk}'")
    assert "only a newer version" in sql("UPDATE approvals_policy SET active_id = NULL")


# ---- at once


def test_two_publish_at_once_and_one_version_comes_of_it(first: PolicyVersion, writer: Principal) -> None:
    ben, cem = published.editor("ben"), published.editor("cem")
    for number in range(2, 8):
        draft = asked(writer, document=changed(f"Wording {number}"))
        seen = published.seen(draft.pk)
        results = world.at_once(lambda d=draft, s=seen: publish(d, ben, s), lambda d=draft, s=seen: publish(d, cem, s))
        assert sorted(one.code for one in results) == ["closed", "ok"], results
        assert PolicyVersion.objects.count() == number
    assert record.verify(stream="system:policies") is None


def test_a_save_and_a_publication_at_once(first: PolicyVersion, writer: Principal, second: Principal) -> None:
    """Either what was seen is in force and the save is told so, or the save counts and nothing was published."""
    ends = []
    for number in range(8):
        draft = asked(writer, document=changed(f"Wording {number}"))
        seen, before = published.seen(draft.pk), PolicyVersion.objects.count()
        late = written(changed(f"Late wording {number}"))
        saving, publication = world.at_once(
            lambda d=draft, w=late: drafts.save(draft_id=d.pk, principal=writer, revision=2, written=w),
            lambda d=draft, s=seen: publish(d, second, s),
        )
        ends.append((saving.code, publication.code))
        assert ends[-1] in (("ok", "not_asked"), ("closed", "ok"))
        assert PolicyVersion.objects.count() == before + (publication.code == "ok")
        active = policies.governing(tool=world.TOOL)
        assert active is not None and "Late" not in active.rules["rules"][0]["text"]
        if saving.code == "ok":
            assert drafts.discard(draft_id=draft.pk, principal=writer, revision=3).ok
    assert len(ends) == 8


def test_two_begin_at_once_and_there_is_one_draft(first: PolicyVersion) -> None:
    ben, cem = published.editor("ben"), published.editor("cem")
    results = world.at_once(*(lambda who=who: drafts.start(slug=SLUG, principal=who) for who in (ben, cem)))
    assert sorted(one.code for one in results) == ["draft_exists", "ok"]
    assert PolicyDraft.objects.count() == 1


def test_whoever_decides_under_the_policy_makes_the_publisher_wait(
    first: PolicyVersion, writer: Principal, second: Principal
) -> None:
    from django.db import transaction

    draft = asked(writer)
    results: list[DraftResult] = []

    def go() -> None:
        results.append(publish(draft, second))
        connections.close_all()

    with transaction.atomic():
        assert policies.governing(tool=world.TOOL, lock=True) == first
        thread = threading.Thread(target=go)
        thread.start()
        assert world.somebody_waits() and not results
        assert policies.governing(tool=world.TOOL) == first
    thread.join(timeout=120)
    assert [one.code for one in results] == ["ok"]
