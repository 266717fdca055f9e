"""Addresses of the runs app's own pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
