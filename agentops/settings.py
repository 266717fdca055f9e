"""Settings, all from the environment; a running local stack's own file supplies what is not set there."""

import datetime as dt
import importlib.util
import os
import re
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from agentops.mail_address import BadMailAddress, mail_settings
from approvals.working_time import Calendar
from runs.money import MoneyError, parse_amount

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("AGENTOPS_DATA", BASE_DIR / ".data")).expanduser().resolve()


def _stack_env() -> dict[str, str]:
    """What the local stack wrote about itself, so that a second shell reaches it."""
    path = DATA_DIR / "stack.env"
    if "DATABASE_URL" in os.environ or not path.is_file() or not os.access(path, os.R_OK):
        return {}
    lines = (line.partition("=") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


_ENV = {**_stack_env(), **os.environ}


WEEK = "mon,tue,wed,thu,fri"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WRONG: list[str] = []  # what cannot be read, each by its name with its remedy; said together, at the end of this file
T = TypeVar("T")


def env(name: str, default: str = "") -> str:
    return _ENV.get(name, default)


def parsed(name: str, default: str, read: Callable[[str], T], remedy: str) -> T:
    """What `read` makes of a setting. Where it cannot, that is noted, and the default stands for it until the end."""
    try:
        return read(env(name).strip() or default)
    except (ValueError, KeyError, OSError):  # the last for names that can be no file
        WRONG.append(f"{name} is {env(name)!r}: {remedy}")
        return read(default)


def flag(name: str, default: str = "0") -> bool:
    """A word that is neither on nor off is refused: a mistyped one must not pass for off."""
    on, off = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
    return parsed(name, default, lambda text: (*on, *off).index(text.lower()) < len(on), "give 1 or 0, or unset it")


def one_of(name: str, *words: str) -> str:
    """One of a few words, the first by default."""
    return parsed(
        name, words[0], lambda text: words[words.index(text.upper())], f"give {', '.join(words)}, or unset it"
    )


def web_address(name: str, default: str) -> str:
    """An http(s) address without a path."""

    def read(text: str) -> str:
        if not re.fullmatch(r"https?://[^/\s?#]+", text.rstrip("/")):
            raise ValueError
        return text.rstrip("/")

    return parsed(name, default, read, "give an address such as https://agentops.example.com")


def short_name(name: str, default: str) -> str:
    """What can stand in an identity, a header and the name of a queue."""

    def read(text: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", text):
            raise ValueError
        return text

    return parsed(name, default, read, "give up to 40 letters, digits, points, hyphens and underscores")


def number(name: str, default: str) -> float:
    """A positive number of the environment."""

    def read(text: str) -> float:
        if not 0 < float(text) < 1e9:
            raise ValueError
        return float(text)

    return parsed(name, default, read, "give a positive number of seconds below a thousand million, or unset it")


def amounts(name: str) -> dict[str, int]:
    """Amounts by currency, in minor units, written as `USD=1000.00,EUR=900.00`."""
    found: dict[str, int] = {}
    for part in env(name).split(",") if env(name).strip() else []:
        currency, _, text = part.strip().partition("=")
        try:
            money = parse_amount(text=text, currency=currency)
        except MoneyError as problem:
            WRONG.append(
                f"{name} is {env(name)!r}, and {part.strip()!r} {problem}: write such as USD=1000.00,EUR=900.00"
            )
            continue
        found[money.currency] = money.minor
    return found


def listed(name: str) -> dict[str, str]:
    """Pairs written as `a=b,c=d`; empty for none."""
    words = [part.strip() for part in env(name).split(",") if part.strip()]
    if any(not all(part.partition("=")) for part in words):
        WRONG.append(f"{name} is {env(name)!r}: write such as billing.create_credit=ours.grounds.credit, or unset it")
    return {part.partition("=")[0]: part.partition("=")[2] for part in words}


def working_time() -> Calendar:
    """The calendar that working time is counted by."""

    def hours(text: str) -> tuple[dt.time, dt.time]:
        begins, ends = (dt.time.fromisoformat(one.strip()) for one in text.split("-"))
        Calendar(zone=zoneinfo.ZoneInfo("UTC"), days=frozenset({0}), begins=begins, ends=ends)
        return begins, ends

    def days(text: str) -> frozenset[int]:
        return frozenset(DAYS.index(day.strip().lower()) for day in text.split(","))

    def dates(text: str) -> frozenset[dt.date]:
        return frozenset(dt.date.fromisoformat(day.strip()) for day in text.split(",") if day.strip())

    begins, ends = parsed("WORKING_HOURS", "09:00-17:00", hours, "write such as 09:00-17:00, the earlier time first")
    return Calendar(
        zone=parsed("WORKING_ZONE", "UTC", zoneinfo.ZoneInfo, "write the name of a zone, such as Europe/London"),
        days=parsed("WORKING_DAYS", WEEK, days, f"write such as {WEEK}"),
        begins=begins,
        ends=ends,
        holidays=parsed("HOLIDAYS", "", dates, "write days such as 2026-12-25,2026-12-28, or unset it"),
    )


DEBUG = flag("DEBUG")
DEMO = flag("DEMO")
DEMO_RUNS = flag("DEMO_RUNS", "1")  # the demo world comes with runs that wait for somebody
SECRET_KEY = env("SECRET_KEY", "insecure-until-the-stack-makes-one" if DEBUG else "")
PORT = parsed("PORT", "8000", lambda text: str(range(65536).index(int(text))), "give a number from 1 to 65535")
PUBLIC_URL = web_address("PUBLIC_URL", f"http://localhost:{PORT}")
ALLOWED_HOSTS = [one.strip() for one in env("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
INSTALLATION = short_name("INSTALLATION", "local")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "django_fsm",
    "django_htmx",
    "ninja",
    "lucide",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "runs",
    "approvals",
    "reconciliation",
    "agentops",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "agentops.pages.zone.ViewerZone",
    "agentops.busy.Busy",
]

ROOT_URLCONF = "agentops.urls"
ASGI_APPLICATION = "agentops.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "agentops.templating.ShownTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agentops.pages.context.shell",
            ],
        },
    }
]

# ---- database: each process role has its own needs (a pool would be rebuilt for every Celery task)
DATABASE_URL = env("DATABASE_URL")
APP_DB_ROLE = env("APP_DB_ROLE", "agentops_app")
DATABASES = {"default": dj_database_url.parse("postgresql:///agentops")}
try:
    DATABASES = {"default": dj_database_url.parse(DATABASE_URL or "postgresql:///agentops")}
except ValueError:  # its words may quote the password
    WRONG.append(
        "DATABASE_URL is not an address: write postgresql://name:password@host:5432/database, with every special"
        " character of the password percent-encoded"
    )
if DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
    WRONG.append("DATABASE_URL must begin with postgresql://")
DATABASES["default"]["OPTIONS"] = {
    "connect_timeout": 10,
    # plans are kept by the server; a pooler between that changes servers under a session cannot have that
    **({"server_side_binding": True, "prepare_threshold": 5} if flag("PREPARE_STATEMENTS", "1") else {}),
    **DATABASES["default"].get("OPTIONS", {}),
    # compiling (jit) takes longer than any statement here may
    "options": "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=30000 -c statement_timeout=30000"
    " -c jit=off",
}
if flag("WEB_POOL"):
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 10, "timeout": 5}
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ---- accounts
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_ADAPTER = "agentops.accounts.ClosedSignup"
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
_FORMS = "agentops.account_forms"
ACCOUNT_FORMS = {
    "login": f"{_FORMS}.LoginForm",
    "reauthenticate": f"{_FORMS}.ReauthenticateForm",
    "change_password": f"{_FORMS}.ChangePasswordForm",
    "set_password": f"{_FORMS}.SetPasswordForm",
}
MFA_FORMS = {
    "authenticate": f"{_FORMS}.AuthenticateCodeForm",
    "reauthenticate": f"{_FORMS}.ReauthenticateCodeForm",
    "activate_totp": f"{_FORMS}.ActivateTOTPForm",
    "add_webauthn": f"{_FORMS}.AddWebAuthnForm",
    "edit_webauthn": f"{_FORMS}.EditWebAuthnForm",
    "login_webauthn": f"{_FORMS}.LoginWebAuthnForm",
    "reauthenticate_webauthn": f"{_FORMS}.ReauthenticateWebAuthnForm",
    "authenticate_webauthn": f"{_FORMS}.AuthenticateWebAuthnForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # an administrator enters addresses; nobody proves theirs
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = PUBLIC_URL.startswith("http://localhost")
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_NAME = f"agentops_session_{PORT}"
CSRF_COOKIE_NAME = f"agentops_csrf_{PORT}"

# ---- mail and webhooks: who is told of requests, by the messenger alone
EMAIL_URL = env("EMAIL_URL") or "console:"
try:
    globals().update(mail_settings(url=EMAIL_URL))
except BadMailAddress as problem:
    WRONG.append(f"EMAIL_URL is not an address for mail: {problem}")
EMAIL_TIMEOUT = 10  # seconds for each word of the mail server
DEFAULT_FROM_EMAIL = MAIL_FROM = env("MAIL_FROM") or f"agentops@{urlsplit(PUBLIC_URL).hostname}"
WEBHOOK_PRIVATE = flag("WEBHOOK_PRIVATE")  # whether webhooks may lead into the own network

# ---- content security: nothing inline, nothing from elsewhere
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
        "manifest-src": ["'self'"],
    }
}
CSRF_FAILURE_VIEW = "agentops.pages.errors.stale_form"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

# ---- static files, straight from the packages that ship them
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
_bootstrap = importlib.util.find_spec("bootstrap_wrapper")
assert _bootstrap is not None and _bootstrap.origin is not None
STATICFILES_DIRS = [BASE_DIR / "static", ("bootstrap", Path(_bootstrap.origin).parents[1] / "bootstrap")]
WHITENOISE_USE_FINDERS = True

# ---- queue and live hints
BROKER_URL = env("BROKER_URL", "redis://127.0.0.1:6379/0")
CHANNEL_URL = env("CHANNEL_URL", "redis://127.0.0.1:6379/1")
CELERY_BROKER_URL = BROKER_URL
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# nothing here commands workers through the broker; whoever can write there could, and on RabbitMQ two workers of one
# machine would contend for the queue that the commands come by
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 120} if "redis" in BROKER_URL else {}
CELERY_TASK_DEFAULT_QUEUE = f"agentops.{INSTALLATION}"  # one broker may serve several installations
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CHANNEL_URL], "prefix": "agentops"},
    }
}

# ---- the outside systems and the model
BILLING_URL = env("BILLING_URL")
BILLING_API_KEY = env("BILLING_API_KEY")
BILLING_WEBHOOK_SECRET = env("BILLING_WEBHOOK_SECRET")
HELPDESK_URL = env("HELPDESK_URL")
HELPDESK_TOKEN = env("HELPDESK_TOKEN")
SANDBOX_URL = env("SANDBOX_URL")
# where `check_connectors --carry-out` may really act: tool=dotted.path.of.a.function, separated by commas
CONNECTOR_GROUNDS = listed("CONNECTOR_GROUNDS")
AGENT_MODEL = env("AGENT_MODEL", "rules")

# ---- limits in seconds; a lease outlives the longest call by a wide margin
LEASE_SECONDS = number("LEASE_SECONDS", "120")
CALL_LIMIT_SECONDS = number("CALL_LIMIT_SECONDS", "10")
FACT_FRESH = dt.timedelta(seconds=number("FACT_FRESH_SECONDS", "60"))
HELD_RETRY = dt.timedelta(seconds=2)

# ---- what one admin may settle alone; above it, and in any currency not named once one is, a second one confirms
SETTLE_ALONE_UP_TO = amounts("SETTLE_ALONE_UP_TO")

# ---- what rules call working time
WORKING_TIME = working_time()

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
SILENCED_SYSTEM_CHECKS: list[str] = []
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": one_of("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")},
    "loggers": {"httpx": {"level": "WARNING"}, "stripe": {"level": "WARNING"}},
}

if WRONG:
    raise ImproperlyConfigured("\n".join(WRONG))
