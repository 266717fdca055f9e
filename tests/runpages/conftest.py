"""A real web process on this test's database, hints through a real server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client

from agentops.local.postgres import EmbeddedPostgres
from tests.runpages import serving, world
from tests.runpages.billing import Billing


@pytest.fixture(scope="session")
def hint_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("hints")
    with serving.hint_server(folder) as url:
        yield url


@pytest.fixture
def web(db: str, postgres: EmbeddedPostgres, hint_url: str, settings: object) -> Iterator[serving.Web]:
    """The product's web process; this process publishes its hints to the same server."""
    layer = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}
    settings.CHANNEL_LAYERS = {  # type: ignore[attr-defined]
        "default": {**layer, "CONFIG": {"hosts": [hint_url], "prefix": "agentops"}}
    }
    with serving.web_process(database_url=postgres.url("app", db), channel_url=hint_url) as running:
        yield running


@pytest.fixture
def billing(monkeypatch: pytest.MonkeyPatch) -> Billing:
    """What the desk asks before it takes a person's word."""
    fake = Billing()
    monkeypatch.setattr("reconciliation.views.tool", lambda name: fake)
    return fake


@pytest.fixture
def signed_in(db: str) -> Callable[..., Client]:
    """A client signed in as a person with these permissions."""

    def make(*permissions: str, name: str = "priya") -> Client:
        client = Client(raise_request_exception=True)
        client.force_login(world.person(name, *permissions))
        return client

    return make
