from django.apps import AppConfig


class Config(AppConfig):
    name = "reconciliation"
    label = "reconciliation"
    default_auto_field = "django.db.models.BigAutoField"
