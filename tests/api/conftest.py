"""Two integrations with a token each, on a database of their own."""

import pytest

from runs.services import tokens
from tests.api.caller import Caller


@pytest.fixture
def desk(db: str) -> Caller:
    return Caller(tokens.issue(name="helpdesk", label="Help desk"))


@pytest.fixture
def other(db: str) -> Caller:
    return Caller(tokens.issue(name="other", label="Another system"))
