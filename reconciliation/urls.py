"""Addresses of the reconciliation app's own pages."""

from django.urls import path

from reconciliation import backed_views, statement_views, views

urlpatterns = [
    path("cases/", views.queue, name="cases"),
    path("cases/at-risk.csv", views.risk_export, name="risk_export"),
    path("cases/<int:number>/", views.case_page, name="case"),
    path("cases/<int:number>/claim", views.case_claim, name="case_claim"),
    path("cases/<int:number>/release", views.case_release, name="case_release"),
    path("cases/<int:number>/settle", views.case_settle, name="case_settle"),
    path("cases/<int:number>/confirm", views.case_confirm, name="case_confirm"),
    path("cases/<int:number>/processes/<uuid:process_id>/gone", views.case_gone, name="case_gone"),
    path("operations/<uuid:operation_id>/probe", views.probe_now, name="operation_probe"),
    path("operations/<uuid:operation_id>/doubt", views.operation_doubt, name="operation_doubt"),
    path("statements/", statement_views.statement_list, name="statements"),
    path("statements/start", statement_views.statement_start, name="statement_start"),
    path("statements/upload", statement_views.statement_upload, name="statement_upload"),
    path("statements/<int:number>/", statement_views.statement_page, name="statement"),
    path("statements/<int:number>/columns", statement_views.statement_columns, name="statement_columns"),
    path("statements/<int:number>/settle", backed_views.statement_settle, name="statement_settle"),
    path("statements/<int:number>/stop", statement_views.statement_stop, name="statement_stop"),
    path("statements/<int:number>/go-on", statement_views.statement_go_on, name="statement_go_on"),
    path("statements/<int:number>/export", statement_views.statement_export, name="statement_export"),
    path("statements/differences/<int:difference_id>/note", statement_views.difference_note, name="difference_note"),
]
