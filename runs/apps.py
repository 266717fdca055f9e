from django.apps import AppConfig


class Config(AppConfig):
    name = "runs"
    label = "runs"
    default_auto_field = "django.db.models.BigAutoField"
