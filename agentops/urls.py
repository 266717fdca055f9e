"""All addresses of the product."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from agentops import accounts, health
from agentops.api.views import api

handler500 = "agentops.busy.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    # Administrators make accounts, enter addresses and set forgotten passwords, and only the messenger sends mail.
    re_path(r"^accounts/(?:signup|email|confirm-email|password/reset)/", accounts.closed),
    path("accounts/", include("allauth.urls")),
    path("", include("agentops.pages.urls")),
    path("", include("approvals.urls")),
    path("", include("runs.urls")),
    path("", include("reconciliation.urls")),
]
