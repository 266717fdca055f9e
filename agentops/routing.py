"""Addresses of web sockets, and the origins they may be opened from."""

from urllib.parse import urlsplit, urlunsplit

from django.urls import URLPattern, path

from agentops.consumers import ListsConsumer, RunConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/runs/<uuid:run_id>/", RunConsumer.as_asgi()),
    path("ws/approvals/", ListsConsumer.as_asgi()),
]


def origins(*, public_url: str) -> list[str]:
    """Scheme, host and port of our own pages; on one machine both names of this host."""
    parts = urlsplit(public_url)
    found = [urlunsplit((parts.scheme, parts.netloc, "", "", ""))]
    port = f":{parts.port}" if parts.port else ""
    if parts.hostname in ("localhost", "127.0.0.1"):
        found = [f"{parts.scheme}://{name}{port}" for name in ("localhost", "127.0.0.1")]
    return found
