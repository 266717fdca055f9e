from django.apps import AppConfig


class Config(AppConfig):
    name = "approvals"
    label = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
