"""A test's browser talks to the web process of that test, whoever else was first at a port."""

import pytest

from tests.runpages import serving

pytestmark = pytest.mark.browser


def test_a_port_that_another_server_has_is_not_taken_for_our_own(
    web: serving.Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = [web.port, serving.free_port(), serving.free_port()]
    monkeypatch.setattr(serving, "free_port", lambda: ports.pop(0))
    with serving.web_process(database_url=web.database_url, channel_url=web.channel_url) as other:
        assert other.port != web.port and serving.listens(other.process, other.port)
        assert serving.listens(web.process, web.port) and not serving.listens(other.process, web.port)
