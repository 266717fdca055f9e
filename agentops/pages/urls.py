"""Pages that show several apps' facts. Names are flat, so templates of every app can link to them."""

from django.urls import path

from agentops.pages import home

urlpatterns = [
    path("", home.home, name="home"),
]
