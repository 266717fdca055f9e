"""Pages about many runs, asked for in every awkward way, answer."""

import pytest

from runs.models import Batch
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
