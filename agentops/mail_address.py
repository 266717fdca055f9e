"""Where mail goes, from one address: `console:`, `file:/folder`, `smtp://`, `smtp+tls://` or `smtps://`. No Django."""

from typing import Any
from urllib.parse import unquote, urlsplit

BACKENDS = "django.core.mail.backends"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
FORMS = "write console:, file:/folder, smtp://host:25, smtp+tls://name:password@host:587 or smtps://…@host:465"


class BadMailAddress(ValueError):
    """It is none of these; the message quotes nothing, since the address may hold a password."""


def mail_settings(*, url: str) -> dict[str, Any]:
    """Django's settings of that meaning. Raises BadMailAddress."""
    if url == "console:":
        return {"EMAIL_BACKEND": "agentops.telling.log_mail.LogLines"}
    scheme, _, rest = url.partition(":")
    if scheme == "file" and rest.startswith("/") and not rest.startswith("//"):
        return {"EMAIL_BACKEND": f"{BACKENDS}.filebased.EmailBackend", "EMAIL_FILE_PATH": rest}
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise BadMailAddress(FORMS) from None
    if scheme not in PORTS or not host or port == 0 or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadMailAddress(FORMS)
    if bool(parts.username) != bool(parts.password):
        raise BadMailAddress(f"a user name needs its password, percent-encoded; {FORMS}")
    return {
        "EMAIL_BACKEND": f"{BACKENDS}.smtp.EmailBackend",
        "EMAIL_HOST": host,
        "EMAIL_PORT": port or PORTS[scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": scheme == "smtp+tls",
        "EMAIL_USE_SSL": scheme == "smtps",
    }
