"""Addresses of the reconciliation app's own pages."""

from django.urls import path

from reconciliation import views

urlpatterns = [
    path("cases/", views.queue, name="cases"),
    path("cases/<int:number>/", views.case_page, name="case"),
    path("cases/<int:number>/claim", views.case_claim, name="case_claim"),
    path("cases/<int:number>/release", views.case_release, name="case_release"),
    path("cases/<int:number>/settle", views.case_settle, name="case_settle"),
    path("cases/<int:number>/confirm", views.case_confirm, name="case_confirm"),
    path("cases/<int:number>/processes/<uuid:process_id>/gone", views.case_gone, name="case_gone"),
    path("operations/<uuid:operation_id>/probe", views.probe_now, name="operation_probe"),
]
