"""Starting a run from a file, and making, listing and ending tokens: bad input is named, good input works once."""

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runs.models import ApiToken, Principal, Run
from runs.services import tokens

pytestmark = pytest.mark.usefixtures("db")
GOOD = {"workflow": "service_credit", "input": {"ticket": "CS-8812"}}


def run(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue()


def refusal(name: str, *arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        run(name, *arguments)
    return str(caught.value)


def written(tmp_path: Path, body: Any) -> str:
    path = tmp_path / "run.json"
    path.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
    return str(path)


def test_a_run_starts_once_from_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    first, again = run("start_run", path), run("start_run", path)
    made = Run.objects.get()
    assert first.startswith("started") and again.startswith("already there")
    assert str(made.pk) in first and str(made.pk) in again
    assert made.initiator.kind == Principal.Kind.INTEGRATION


def test_each_account_of_the_machine_is_an_initiator_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for number in (0, 2_000_000_001):  # the second has no name
        monkeypatch.setattr(os, "getuid", lambda number=number: number)
        run("start_run", written(tmp_path, {**GOOD, "key": f"of-{number}"}))
        made.append(Run.objects.latest("created_at").initiator.key)
    assert made == ["integration:command-line:root", "integration:command-line:uid-2000000001"]


def test_a_key_makes_it_once_and_never_something_else(tmp_path: Path) -> None:
    run("start_run", written(tmp_path, {**GOOD, "key": "may-1"}))
    run("start_run", written(tmp_path, {**GOOD, "key": "may-2"}))
    assert Run.objects.count() == 2
    said = refusal("start_run", written(tmp_path, {**GOOD, "input": {"ticket": "CS-1"}, "key": "may-1"}))
    assert "'key'" in said and "other input" in said
    assert Run.objects.count() == 2


BAD_FILES: list[tuple[Any, str]] = [
    (b"", "not acceptable JSON"),
    (b"workflow: service_credit", "not acceptable JSON"),
    (b"\x89PNG\r\n\x1a\n\x00\xff", "not acceptable JSON"),
    (b"\xff\xfe{\x00}\x00", "not acceptable JSON"),
    (b"[" * 40_000, "not acceptable JSON"),
    (b'{"workflow": "a", "workflow": "b"}', "'workflow' is given twice"),
    (b'{"workflow": "service_credit", "input": {"ticket": NaN}}', "NaN"),
    (b" " * 100_001, "larger than"),
    ([], "one JSON object"),
    ("text", "one JSON object"),
    ({}, "'workflow'"),
    ({"workflow": "service_credit"}, "'input'"),
    ({"workflow": 1, "input": {}}, "'workflow'"),
    ({"workflow": None, "input": {}}, "'workflow'"),
    ({"workflow": "service_credit", "input": []}, "'input'"),
    ({"workflow": "no_such", "input": {}}, "'workflow'"),
    ({"workflow": "\ud800", "input": {}}, "'workflow'"),
    ({**GOOD, "amount": "1.00"}, "'amount'"),
    ({**GOOD, "\ud800": 1}, "unknown field"),
    ({**GOOD, "key": 5}, "'key'"),
    ({**GOOD, "key": "k" * 151}, "'key'"),
    ({**GOOD, "key": "a\x00"}, "'key'"),
    ({**GOOD, "key": "zwölf"}, "'key'"),
    ({"workflow": "service_credit", "input": {}}, "input.ticket"),
    ({"workflow": "service_credit", "input": {"ticket": "x"}}, "input.ticket"),
    ({"workflow": "service_credit", "input": {"ticket": 8812}}, "input.ticket"),
    ({"workflow": "service_credit", "input": {"ticket": "CS-1\x00"}}, "input.ticket"),
    ({"workflow": "service_credit", "input": {"ticket": "CS-1", "amount": 1}}, "input.amount"),
]


def test_a_bad_file_is_refused_by_name_and_starts_nothing(tmp_path: Path) -> None:
    for body, words in BAD_FILES:
        path = written(tmp_path, body)
        said = refusal("start_run", path)
        assert said.startswith(path) and words in said, (body, said)
        assert len(said) < 1000
        said.encode()  # can be printed
    assert not Run.objects.exists()


def test_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (
        (tmp_path / "missing.json", "No such file"),
        (tmp_path, "not a file"),
        (tmp_path / "pipe", "not a file"),
        (tmp_path / "loop", "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read"),
        (Path("/dev/zero"), "not a file"),
    ):
        said = refusal("start_run", str(name))
        assert words in said and "give the path of a JSON file" in said
    assert not Run.objects.exists()


def test_a_token_is_shown_once_and_works() -> None:
    token = run("make_token", "help-desk-2", "--label", "Help desk, second").strip()
    found = tokens.live(token=token)
    assert found is not None
    assert (found.principal.key, found.principal.label) == ("integration:help-desk-2", "Help desk, second")
    assert token not in run("tokens") and "integration:help-desk-2" in run("tokens")


def test_a_second_token_for_the_same_integration_lets_one_be_changed() -> None:
    first, second = run("make_token", "desk").strip(), run("make_token", "desk").strip()
    assert first != second and Principal.objects.filter(key="integration:desk").count() == 1
    old = ApiToken.objects.order_by("created_at").first()
    assert old is not None
    assert "revoked" in run("tokens", "--revoke", str(old.pk))
    assert tokens.live(token=first) is None and tokens.live(token=second) is not None
    assert f"made {old.created_at:%Y-%m-%d %H:%M} UTC  revoked" in run("tokens")
    assert run("tokens").count("live") == 1 and run("tokens").count("revoked") == 1
    assert "no live token" in refusal("tokens", "--revoke", str(old.pk))


@pytest.mark.parametrize("name", ["", " ", "-", "a b", "zwölf", "a/b", "x" * 61, "a\x00b", "a\n"])
def test_a_bad_name_makes_no_token(name: str) -> None:
    assert "name" in refusal("make_token", f"{name}")
    assert not ApiToken.objects.exists()


def test_bad_labels_and_ids() -> None:
    for label in ("x" * 201, "a\nb", "a\x00", " ", "\ud800"):
        assert "--label" in refusal("make_token", "desk", "--label", label)
    for text in ("", "x", "0" * 31, "\x00", "00000000-0000-0000-0000-000000000000"):
        assert "--revoke" in refusal("tokens", f"--revoke={text}")
    assert not ApiToken.objects.exists()
