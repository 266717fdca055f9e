"""The web process: pages over HTTP, live pages over web sockets from our own origin only."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
pages = get_asgi_application()  # first: it sets Django up for the imports below

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import OriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402

from agentops.routing import origins, websocket_urlpatterns  # noqa: E402
from runs.garbage import keep_what_is_here  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": OriginValidator(
            AuthMiddlewareStack(URLRouter(websocket_urlpatterns)), origins(public_url=settings.PUBLIC_URL)
        ),
    }
)
keep_what_is_here()
