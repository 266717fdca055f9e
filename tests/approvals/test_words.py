"""Sentences, and untrusted text made harmless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.words import NOT_COUNTED, SENTENCES, is_blank, sentence, storable
from runs.texts import one_line


def test_every_code_has_words_of_its_own() -> None:
    assert len(set(SENTENCES.values())) == len(SENTENCES)
    assert "no_such_code" in sentence(code="no_such_code")


@pytest.mark.parametrize("code", SENTENCES)
def test_a_missing_detail_never_breaks_a_sentence(code: str) -> None:
    assert len(sentence(code=code)) > 10
    assert "{" not in sentence(code=code, detail={})


def test_times_are_said_with_their_zone() -> None:
    words = sentence(code="expired", detail={"at": "2026-11-29T15:03:00+01:00"})
    assert "29 November 2026 at 14:03 UTC" in words


def test_only_who_has_answered_is_told_that_it_did_not_count() -> None:
    counted = "answer was not counted"
    told = {code for code in SENTENCES if counted in sentence(code=code)}
    assert told == NOT_COUNTED
    assert not [code for code in SENTENCES if counted in sentence(code=code, answered=False)]
    own = {"by": "Maya", "choice": "approve", "at": "2026-11-29T15:03:00+00:00", "yours": True}
    assert sentence(code="decided", detail=own) == "You approved this on 29 November 2026 at 15:03 UTC. It counts once."


def test_braces_in_a_name_are_only_a_name() -> None:
    detail = {"by": "{0.__class__}", "choice": "approve", "at": "2026-11-29T15:03:00+00:00"}
    assert sentence(code="decided", detail=detail).startswith("{0.__class__} approved this")


def test_text_cannot_pretend_to_be_another_line_or_run_backwards() -> None:
    shown = one_line(text="Acme\r\nAmount: 1.00\u2028x\u202egnp\x00\u200b", limit=100)
    assert shown == "Acme Amount: 1.00 xgnp"


@given(st.text(max_size=400), st.integers(2, 60))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text=text, limit=limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    assert one_line(text=line, limit=limit) == line


@given(st.text(max_size=100))
def test_what_is_storable_stays_so(text: str) -> None:
    stored = storable(text=text)
    stored.encode()
    assert "\x00" not in stored
    assert storable(text=stored) == stored


def test_a_reason_needs_something_to_read() -> None:
    assert is_blank(text=" \u200b\u3000\x1f")
    assert not is_blank(text="不")
