"""All addresses of the product."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("", include("agentops.pages.urls")),
    path("", include("approvals.urls")),
    path("", include("runs.urls")),
    path("", include("reconciliation.urls")),
]
