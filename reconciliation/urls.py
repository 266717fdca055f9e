"""Addresses of the reconciliation app's own pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
