"""Which addresses a webhook may have: https, or a service on this very machine; never one inside the own network by
accident or by somebody's trick with names. Checked when it is given, and again for the address really connected to."""

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

LONGEST = 500
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# addresses that carry another one inside, which a gateway may lead back into the own network
_CARRIERS = tuple(ipaddress.ip_network(net) for net in ("64:ff9b::/96", "2002::/16", "2001::/32"))


class BadAddress(ValueError):
    """The address cannot be told; the message says why."""


def check(*, url: str) -> None:
    """Raises BadAddress for what is not https (or plain http to this machine), or leads to a private address now."""
    parts = _parts(url)
    host = parts.hostname or ""
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        raise BadAddress("give an https:// address; plain http is for localhost alone")
    try:
        found = socket.getaddrinfo(
            host, parts.port or (443 if parts.scheme == "https" else 80), type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError):
        raise BadAddress(f"there is no address for {host!r}") from None
    allowed = may_reach(url=url)
    for *_, place in found:
        if not allowed(str(place[0])):
            raise BadAddress(f"{host} leads to {place[0]}, which is not a public address; see WEBHOOK_PRIVATE")


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        raise BadAddress("this is not a web address") from None
    if not parts.hostname or not port_is_good or url != url.strip() or not url.isprintable() or len(url) > LONGEST:
        raise BadAddress("this is not a web address")
    if parts.username is not None or parts.fragment:
        raise BadAddress("an address holds neither name and password nor a # part")
    return parts


def may_reach(*, url: str) -> Callable[[str], bool]:
    """Whether a connection for this address may go to that IP address."""
    own_machine = (urlsplit(url).hostname or "") in _LOOPBACK

    def allowed(ip: str) -> bool:
        address = ipaddress.ip_address(ip.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        if own_machine:
            return address.is_loopback
        if settings.WEBHOOK_PRIVATE:
            return not address.is_multicast and not address.is_unspecified
        carried = any(address in net for net in _CARRIERS if net.version == address.version)
        return address.is_global and not address.is_multicast and not carried

    return allowed
