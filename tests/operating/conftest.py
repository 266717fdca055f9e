"""Servers for the parts that connect: an embedded Valkey for the whole module list."""

from collections.abc import Iterator

import pytest

from agentops.local.valkey import EmbeddedValkey


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedValkey]:
    with EmbeddedValkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server
