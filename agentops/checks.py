"""What is wrong with the settings, before it goes wrong in use: `manage.py check`. No connection is opened here.

Every message names the setting and what to do. The ids are stable. Commands that only change code or tables are let
through, since they are used where nothing runs yet. What needs a connection is in `checks_live`.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email
from django.http.request import validate_host

from agentops import servers
from runs.providers.base import ProviderDown
from runs.providers.pydantic_ai_provider import LIMIT_SECONDS
from runs.providers.registry import UnknownProvider, provider
from runs.providers.scripted import BadScript

OURS = ("agentops", "reconciliation", "approvals", "runs")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
KNOWN_KEYS = ("insecure-until-the-stack-makes-one",)
SHORTEST_KEY = 32
CODE_COMMANDS = {"makemigrations", "migrate", "sqlmigrate", "showmigrations", "collectstatic", "compilemessages"}
# what sets an installation up needs its database, and neither billing nor help desk
CODE_COMMANDS |= {"createsuperuser", "changepassword", "publish_policy", "make_token", "tokens", "state_machines"}

Found = Iterator[CheckMessage]


def only_code() -> bool:
    """Whether a command is running that changes code or tables and starts nothing."""
    return Path(sys.argv[0]).name == "manage.py" and sys.argv[1:2] != [] and sys.argv[1] in CODE_COMMANDS


def _secret_key() -> Found:
    try:
        key = settings.SECRET_KEY
    except ImproperlyConfigured:  # Django's own words, for an empty one
        key = ""
    how = "python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"
    make = f"set it to a long random text, the same for every process; {how} makes one"
    if not key:
        yield Error(f"SECRET_KEY is not set: {make}", id="agentops.E001")
    elif not settings.DEBUG and (key in KNOWN_KEYS or len(key) < SHORTEST_KEY or len(set(key)) < 8):
        yield Error(f"SECRET_KEY is known or easy to guess, so sessions can be forged: {make}", id="agentops.E002")


def _database() -> Found:
    if not settings.DATABASE_URL:
        hint = "start the local stack (make run), or give postgresql://name:password@host:5432/database"
        yield Error(f"DATABASE_URL is not set: {hint}", id="agentops.E003")


def _queues() -> Found:
    for name, allowed, number in (
        ("BROKER_URL", servers.BROKER_SCHEMES, "agentops.E007"),
        ("CHANNEL_URL", servers.CHANNEL_SCHEMES, "agentops.E009"),
    ):
        try:
            servers.require_scheme(url=getattr(settings, name), allowed=allowed)
        except servers.BadScheme as problem:
            yield Error(f"{name} {problem}; any other is taken for another server, or for none", id=number)


def _systems() -> Found:
    for name, meant in (
        ("BILLING_URL", "billing's address"),
        ("BILLING_API_KEY", "the key billing gave you"),
        ("BILLING_WEBHOOK_SECRET", "the secret that billing signs its events with; without it none is believed"),
        ("HELPDESK_URL", "the help desk's address"),
        ("HELPDESK_TOKEN", "the token the help desk gave you"),
    ):
        value = getattr(settings, name)
        if not value.strip():
            yield Error(f"{name} is not set: give {meant}", id="agentops.E011")
        elif name.endswith("_URL") and _web_address(value) is None:
            yield Error(f"{name} is not a web address: write https://host or https://host/path", id="agentops.E011")


def _model() -> Found:
    try:
        chosen = provider()
        ready = getattr(chosen, "ready", None)
        if ready is not None:
            ready()
    except (UnknownProvider, BadScript) as problem:
        yield Error(str(problem), id="agentops.E012")
    except ProviderDown as problem:
        yield Error(f"the model cannot be asked: {problem}", id="agentops.E012")
    if settings.AGENT_MODEL != "rules":
        lease = settings.LEASE_SECONDS
        if lease <= LIMIT_SECONDS:
            hint = f"set it above {LIMIT_SECONDS:g}, the longest a model is waited for"
            yield Error(f"LEASE_SECONDS is {lease:g}: {hint}", id="agentops.E015")


def _web_address(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if good and text == text.strip() else None


def _public_url() -> Found:
    parts = _web_address(settings.PUBLIC_URL)
    if parts is None or parts.path or parts.query or parts.fragment or parts.username is not None:
        example = "write scheme, host and port alone, such as https://ops.example.com"
        yield Error(f"PUBLIC_URL is {settings.PUBLIC_URL!r}: {example}", id="agentops.E013")
        return
    host = parts.hostname or ""
    if host not in LOOPBACK:
        if settings.DEMO:
            hint = "unset DEMO, or set PUBLIC_URL to localhost"
            yield Error(f"DEMO is on for {host}, and its passwords are known to everybody: {hint}", id="agentops.E014")
        if settings.DEBUG:
            hint = "unset DEBUG, or set PUBLIC_URL to localhost"
            yield Error(f"DEBUG is on for {host} and shows code and settings to visitors: {hint}", id="agentops.E014")
        if parts.scheme == "http":
            hint = "serve it by https and say so in PUBLIC_URL; sign-ins and votes can be read on the way"
            yield Warning(f"PUBLIC_URL is plain http for {host}: {hint}", id="agentops.W019")
    if not settings.DEBUG and not validate_host(f"[{host}]" if ":" in host else host, settings.ALLOWED_HOSTS):
        hint = "add it, or every page of it is refused"
        yield Error(f"ALLOWED_HOSTS does not hold {host}, the host in PUBLIC_URL: {hint}", id="agentops.E018")


def _limits() -> Found:
    lease, call = settings.LEASE_SECONDS, settings.CALL_LIMIT_SECONDS
    said = f"LEASE_SECONDS is {lease:g} and CALL_LIMIT_SECONDS is {call:g}"
    if lease <= call:
        yield Error(f"{said}: a lease has to outlive a call, raise LEASE_SECONDS", id="agentops.E015")
    elif lease < 2 * call:
        yield Warning(f"{said}: leave room for a slow machine, at least twice the call", id="agentops.W016")


def _mail() -> Found:
    address = parseaddr(settings.MAIL_FROM)[1] if settings.MAIL_FROM.isprintable() else ""
    try:
        validate_email(address)
    except ValidationError:
        hint = "give an address that the mail server lets you send from, such as agentops@example.com"
        yield Error(f"MAIL_FROM is {settings.MAIL_FROM!r}: {hint}", id="agentops.E021")
    if settings.EMAIL_URL == "console:" and (urlsplit(settings.PUBLIC_URL).hostname or "") not in LOOPBACK:
        hint = "name your mail server, or nobody is told by mail what waits for them"
        yield Warning(
            f"EMAIL_URL is not set, so mail is only written to the messenger's log: {hint}", id="agentops.W022"
        )


def _packages() -> Found:
    for name in OURS:
        place = Path(apps.get_app_config(name).path).resolve()
        if place != settings.BASE_DIR / name:
            hint = f"it was loaded from {place}; uninstall that one, or start from {settings.BASE_DIR}"
            yield Error(f"another package called {name} is in the place of ours: {hint}", id="agentops.E017")
    for entry in sys.path:
        rival = Path(entry or ".").resolve() / "agentops" / "__init__.py"
        if rival.is_file() and rival.parent != settings.BASE_DIR / "agentops":
            hint = "uninstall it: started from elsewhere, it would be loaded instead of ours"
            yield Warning(f"{rival.parent} is another package called agentops: {hint}", id="agentops.W020")


CHECKS: Sequence[Callable[[], Found]] = (
    _secret_key, _database, _queues, _systems, _model, _public_url, _limits, _mail, _packages,
)  # fmt: skip


@register("agentops")
def settings_are_usable(**_: Any) -> list[CheckMessage]:
    """All of the above."""
    return [] if only_code() else [message for check in CHECKS for message in check()]
