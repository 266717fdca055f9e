"""Pages that show several apps' facts. Names are flat, so templates of every app can link to them."""

from django.urls import path

from agentops.pages import decision, home, inbox, overview

urlpatterns = [
    path("", home.home, name="home"),
    path("overview/", overview.overview, name="overview"),
    path("approvals/", inbox.inbox, name="inbox"),
    path("approvals/arrivals", inbox.arrivals, name="arrivals"),
    path("approvals/<uuid:request_id>/", decision.decision, name="decision"),
    path("approvals/<uuid:request_id>/opened", decision.opened, name="decision_opened"),
    path("approvals/<uuid:request_id>/status", decision.status, name="decision_status"),
]
