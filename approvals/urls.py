"""Addresses of the approvals app's own pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
