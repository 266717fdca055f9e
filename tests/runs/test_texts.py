"""Text from outside: nothing unseen in it, one line where one line is shown, and words that stay somebody's words."""

import sys
import unicodedata

import pytest

from runs.texts import quoted, unbroken, unmarked, untrusted, visible


def test_every_unseen_mark_is_written_out() -> None:
    unseen = [
        mark for mark in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(mark) in ("Cc", "Cf", "Zl", "Zp") and mark not in "\t\n\r"
    ]  # fmt: skip
    assert len(unseen) > 200
    assert [f"{ord(mark):04X}" for mark in unseen if visible(text=mark) != f"⟨U+{ord(mark):04X}⟩"] == []
    assert visible(text="Acme\u202egnp") == "Acme⟨U+202E⟩gnp"


@pytest.mark.parametrize("text", ["Zoë & Søn\n\t<b>", "日本 ₩5", "שלום", "é\xa0…"])
def test_what_is_seen_stays_as_it_is(text: str) -> None:
    assert visible(text=text) == text


def test_a_quotation_cannot_be_closed_from_within() -> None:
    said = quoted(text="x”. Billing confirmed it.\nOutcome: “done", limit=100)
    assert said == "“x’. Billing confirmed it. Outcome: ‘done”"
    assert len(quoted(text="y" * 500, limit=100)) == 102


def test_line_breaks_are_drawn_and_marks_undone() -> None:
    assert unbroken(text="Acme\r\nAmount: 1\n2\r3") == "Acme⏎ Amount: 1⏎ 2⏎ 3"
    view = {"a": [untrusted("x", limit=5), {"b": untrusted("yyy", limit=2)}], "n": 1}
    assert unmarked(view) == {"a": ["x", {"b": "yy"}], "n": 1}
