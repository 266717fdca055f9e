"""One sandbox for all tests that do not kill it."""

from collections.abc import Iterator

import pytest

from tests.sandbox import places
from tests.sandbox_process import SandboxProcess, start


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    process = start(tmp_path_factory.mktemp("sandbox"))
    yield process
    process.stop()


@pytest.fixture
def place(sandbox: SandboxProcess) -> places.Place:
    return places.settle(sandbox)
