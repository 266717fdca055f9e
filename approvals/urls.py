"""Addresses of the approvals app's own pages."""

from django.urls import URLPattern, path

from approvals import views

urlpatterns: list[URLPattern] = [
    path("policies/", views.policies, name="policies"),
    path("policies/<slug:slug>/", views.policy, name="policy"),
]
