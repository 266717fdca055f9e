"""Command line and environment of the sandbox process."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Config:
    """How one process runs. A key or token of ``None`` means that any non-empty credential is accepted."""

    host: str
    port: int
    data: Path
    webhook_url: str | None
    webhook_secret: str
    api_key: str | None
    token: str | None


def parse(*, argv: Sequence[str], environ: Mapping[str, str]) -> Config:
    """Read the arguments, each with a ``SANDBOX_*`` environment variable as its default.

    Exits with a usage message naming the argument when one is missing or malformed.
    """

    def from_env(name: str) -> str | None:
        return environ.get(f"SANDBOX_{name}") or None

    parser = argparse.ArgumentParser(prog="python -m agentops.sandbox", description=__doc__)
    parser.add_argument("--host", default=from_env("HOST") or "127.0.0.1")
    parser.add_argument("--port", type=int, default=int(from_env("PORT") or 9000), help="0 picks a free port")
    parser.add_argument("--data", type=Path, default=from_env("DATA"), help="directory for the storage")
    parser.add_argument("--webhook-url", default=from_env("WEBHOOK_URL"), help="where events are posted")
    parser.add_argument("--webhook-secret", default=from_env("WEBHOOK_SECRET") or "", help="signs the events")
    parser.add_argument("--api-key", default=from_env("API_KEY"), help="billing key; any is accepted without it")
    parser.add_argument("--token", default=from_env("TOKEN"), help="help desk token; any is accepted without it")
    args = parser.parse_args(list(argv))
    if args.data is None:
        parser.error("--data: name the directory that holds the storage (or set SANDBOX_DATA)")
    if not 0 <= args.port <= 65535:
        parser.error(f"--port: {args.port} is not between 0 and 65535")
    if args.webhook_url and not args.webhook_secret:
        parser.error(
            "--webhook-secret: events are signed, so a webhook URL needs a secret (or set SANDBOX_WEBHOOK_SECRET)"
        )
    return Config(
        host=args.host,
        port=args.port,
        data=args.data,
        webhook_url=args.webhook_url,
        webhook_secret=args.webhook_secret,
        api_key=args.api_key,
        token=args.token,
    )
