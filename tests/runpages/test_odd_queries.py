"""Pages about many runs, asked for in every awkward way, answer."""

import datetime as dt

import pytest

from runs.models import Batch
from tests.runpages import scenes, world
from tests.runpages.test_many import OPERATE, VIEW, Maker, me, several


@pytest.mark.parametrize(
    "query",
    [
        {"act": "pause", "all": "1", "q": "a\x00b"},
        {"act": "pause", "all": "1", "q": "\ud800".encode("utf-8", "surrogatepass")},
        {"act": "pause", "all": "1", "q": "%_\\", "state": "\x00"},
        {"act": "\x00", "all": "1"},
        {"act": "pause", "run": ["x" * 1000, "\x00", "{" + "0" * 32 + "}"]},
        {"act": "pause", "page": "99999999999999999999"},
    ],
    ids=ascii,
)
def test_odd_queries(db: str, signed_in: Maker, query: dict[str, object]) -> None:
    several(1)
    client = signed_in(VIEW, OPERATE)
    client.raise_request_exception = False
    assert client.get("/runs/many/", query).status_code < 500
    assert client.post("/runs/many/do", me(**query, reason="x\x00")).status_code < 500
    assert client.get("/switches/", query).status_code < 500
    batch = Batch.objects.first()
    if batch is not None:
        for page in ("0", "-1", "9" * 15, "9" * 30, "\x00", "²"):
            assert client.get(f"/runs/many/{batch.pk}/", {"page": page}).status_code < 500, page


def test_odd_cases_named_with_an_operation(db: str, signed_in: Maker) -> None:
    _, operation = scenes.completed(world.NOW - dt.timedelta(hours=5))
    client = signed_in(VIEW, OPERATE, "reconciliation.settle_case", "reconciliation.view_case")
    client.raise_request_exception = False
    for case in ("9" * 5000, "9" * 19, "-1", "²", "\x00", "1e3", ""):
        for form in ({"case": case}, {"case": case, "reason": "a\x00b"}):
            for act in ("doubt", "probe", "reverse"):
                answer = client.post(f"/operations/{operation.pk}/{act}", me(**form))
                assert answer.status_code in (302, 404, 409, 422), (act, case[:20], answer.status_code)
