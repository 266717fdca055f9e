"""What outside systems are called: one word for each, in a sentence and as a label."""

from agentops.pages import story_asked
from agentops.pages.operating import sentence
from agentops.pages.ways import WAYS
from reconciliation.models import Operation
from runs import words
from runs.tools.registry import SYSTEMS


def test_a_system_is_called_the_same_as_a_label_everywhere() -> None:
    assert {name: words.system_title(name) for name in SYSTEMS} == {name: one.title for name, one in SYSTEMS.items()}


def test_a_system_in_a_sentence() -> None:
    assert [words.system(name) for name in ("billing", "helpdesk", "calendar")] == [
        "billing",
        "the help desk",
        "calendar",
    ]
    assert words.system("helpdesk", begins=True) == "The help desk"
    assert words.system_title("calendar") == "Calendar" and words.system("") == words.system_title("") == ""


def test_what_settled_an_operation_names_it_so() -> None:
    settled = {by: Operation(system="helpdesk", settled_by=by).settled_words for by in ("answer", "probe")}
    assert settled == {"answer": "the help desk's answer", "probe": "asking the help desk"}


def test_no_way_of_answering_speaks_of_the_request_as_closed_already() -> None:
    assert not [way.key for way in WAYS.values() if "is closed" in way.does]


def test_a_heading_of_a_library_is_written_as_ours_are() -> None:
    said = {"Two-Factor Authentication": "Two-factor authentication", " Sign Out ": " Sign out ", "QR code": "QR code"}
    assert {text: words.sentence_case(text) for text in said} == said


def test_a_refusal_to_go_on_names_the_system() -> None:
    detail = {"system": "helpdesk", "until": "2026-11-30T18:00:00+00:00"}
    assert sentence(code="asked_to_wait", detail=detail).startswith(
        "The help desk has asked to be left alone until 18:00"
    )


def test_the_record_names_whom_it_asked_as_the_pages_do() -> None:
    assert story_asked.TOLD["request.opened"]({"stages": [{"name": "manager"}]}).lead == "Asked support managers"
    assert story_asked.TOLD["request.opened"]({"stages": [{"name": "Finance"}, {"name": "Legal"}]}).lead == (
        "Asked Finance, then Legal"
    )
    assert story_asked.TOLD["request.opened"]({}).lead == "Asked people"
    for kind, key in (("counted", "stage"), ("stage_opened", "stage"), ("handed_on", "stage"), ("escalated", "also")):
        lead = story_asked.TOLD[f"request.{kind}"]({key: "manager", "to": "Anna", "counted": "Anna"}).lead
        assert "support managers" in lead, lead
