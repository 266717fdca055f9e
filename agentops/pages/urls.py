"""Pages that show several apps' facts. Names are flat, so templates of every app can link to them."""

from django.urls import path

from agentops.pages import decision, home, inbox, overview, person, run, runs, sandbox

urlpatterns = [
    path("", home.home, name="home"),
    path("overview/", overview.overview, name="overview"),
    path("approvals/", inbox.inbox, name="inbox"),
    path("approvals/arrivals", inbox.arrivals, name="arrivals"),
    path("approvals/<uuid:request_id>/", decision.decision, name="decision"),
    path("approvals/<uuid:request_id>/opened", decision.opened, name="decision_opened"),
    path("approvals/<uuid:request_id>/status", decision.status, name="decision_status"),
    path("runs/", runs.run_list, name="runs"),
    path("runs/<uuid:run_id>/", run.run_page, name="run"),
    path("runs/<uuid:run_id>/live", run.run_live, name="run_live"),
    path("runs/<uuid:run_id>/events/<int:seq>/", run.run_event, name="run_event"),
    path("runs/<uuid:run_id>/record", run.run_record, name="run_record"),
    path("runs/<uuid:run_id>/act/<slug:act>", run.run_act, name="run_act"),
    path("needs-a-person/", person.needs_person, name="needs_person"),
    path("needs-a-person/<uuid:run_id>/", person.person_run, name="person_run"),
    path("needs-a-person/<uuid:run_id>/claim", person.person_claim, name="person_claim"),
    path("needs-a-person/<uuid:run_id>/release", person.person_release, name="person_release"),
    path("needs-a-person/<uuid:run_id>/go-on", person.person_go_on, name="person_go_on"),
    path("sandbox/", sandbox.sandbox, name="sandbox"),
    path("sandbox/fault", sandbox.sandbox_fault, name="sandbox_fault"),
    path("sandbox/clear", sandbox.sandbox_clear, name="sandbox_clear"),
    path("sandbox/correct", sandbox.sandbox_correct, name="sandbox_correct"),
]
