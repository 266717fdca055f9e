"""Which addresses a webhook may have. No network is needed: all are numbers, or refused before they are looked up."""

from typing import Any

import pytest

from agentops.telling import addresses


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "ftp://example.com/", "https://user:word@1.1.1.1/", "https://10.0.0.1/", "https:///x",
        "https://169.254.169.254/latest", "https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://127.0.0.1.:1/",
        "https://[fd00::1]/", "https://0.0.0.0/", "https://1.1.1.1:99999/", " https://1.1.1.1/", "https://1.1.1.1/#a",
        "https://2130706433/", "https://[fe80::1%25lo]/", "https://224.0.0.1/", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_an_address_that_leads_inside_is_refused(url: str) -> None:
    with pytest.raises(addresses.BadAddress):
        addresses.check(url=url)


def test_good_addresses_and_the_setting_for_the_own_network(settings: Any) -> None:
    addresses.check(url="https://1.1.1.1/hook")
    addresses.check(url="http://localhost:8000/hook")
    settings.WEBHOOK_PRIVATE = True
    addresses.check(url="https://10.0.0.1/hook")
    with pytest.raises(addresses.BadAddress):
        addresses.check(url="http://10.0.0.1/hook")
