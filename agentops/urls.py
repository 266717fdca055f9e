"""All addresses of the product."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from agentops import health
from agentops.api.views import api

handler500 = "agentops.busy.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    path("accounts/", include("allauth.urls")),
    path("", include("agentops.pages.urls")),
    path("", include("approvals.urls")),
    path("", include("runs.urls")),
    path("", include("reconciliation.urls")),
]
